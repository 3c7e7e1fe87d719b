#include "server/request/source_languages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/runtime/text/first_bytes.h"
#include "server/base/errors.h"
#include "server/markup/marked_text.h"
#include "server/request/language_detector.h"
#include "server/request/language_scores.h"

namespace linnet::server {
namespace {

// Only so much of each text is read: a sentence or two are enough.
constexpr size_t kBytesOfText = 512;
// The same for all texts together, if none of them is conclusive.
constexpr size_t kBytesOfAll = 4096;
// So much of a fragment that what is left without its tags is mostly as long as the detector reads.
constexpr size_t kBytesOfFragment = 32 << 10;
// Fixed cost of a text, in bytes.
constexpr int64_t kBytesPerText = 256;

linnet::v1::DetectedLanguage Detected(const std::string& code, float confidence) {
  linnet::v1::DetectedLanguage detected;
  detected.set_language_code(code);
  detected.set_confidence(confidence);
  return detected;
}

// The language of a text, or nothing if that is not reliable.
std::optional<linnet::v1::DetectedLanguage> ChooseLanguage(absl::string_view text,
                                                           const LanguageChooser& chooser) {
  const LanguageChoice choice = chooser.Choose(text);
  if (choice.other.has_value()) return Detected(choice.other->code, choice.other->share);
  if (!choice.reliable) return std::nullopt;
  return Detected(choice.code, choice.confidence);
}

// The languages that a text is compared with: the choices, and the target unless it is a variety of
// one of them.
std::vector<std::string> Candidates(const std::vector<std::string>& choices,
                                    const std::string& target) {
  std::vector<std::string> candidates = choices;
  const auto same = [&](const std::string& choice) {
    return PrimaryLanguage(choice) == PrimaryLanguage(target);
  };
  if (!target.empty() && std::none_of(choices.begin(), choices.end(), same))
    candidates.push_back(target);
  return candidates;
}

absl::Status NotDetected(const std::vector<TextItem>& items,
                         const std::vector<std::string>& choices, absl::string_view field) {
  return BadField(field, Reason::kLanguageUnknown,
                  absl::StrCat("is not set and could not be detected from the ",
                               items.size() == 1 ? "text" : "texts", ": set it to one of ",
                               absl::StrJoin(choices, ", "), ", or name a model"));
}

}  // namespace

LanguageDetection::LanguageDetection(std::vector<TextItem> items,
                                     const std::optional<MarkupOptions>& markup,
                                     std::vector<std::string> choices, std::string target_language,
                                     absl::string_view field)
    : items_(std::move(items)),
      markup_(markup),
      choices_(std::move(choices)),
      target_language_(std::move(target_language)),
      field_(field),
      candidates_(Candidates(choices_, target_language_)),
      chooser_(candidates_) {}

absl::string_view LanguageDetection::TextOf(size_t item) const {
  return markup_.has_value() ? plain_texts_[item] : *items_[item].text;
}

void LanguageDetection::Step(int64_t bytes) {
  for (; bytes > 0 && !done(); ++next_) {
    if (markup_.has_value()) {
      const absl::string_view start = model::FirstBytes(*items_[next_].text, kBytesOfFragment);
      plain_texts_.push_back(MarkedText(start, *markup_).text());
      bytes -= std::ssize(start);
    }
    const absl::string_view text = model::FirstBytes(TextOf(next_), kBytesOfText);
    items_[next_].detected = ChooseLanguage(text, chooser_);
    bytes -= std::ssize(text) + kBytesPerText;
  }
}

// The language of most texts, by their bytes. Empty if none is known.
std::string LanguageDetection::MainLanguage() const {
  std::map<std::string, int64_t> bytes;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].detected.has_value()) continue;
    bytes[items_[i].detected->language_code()] +=
        markup_.has_value() ? std::ssize(plain_texts_[i]) : items_[i].bytes();
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : most->first;
}

std::string LanguageDetection::AllTexts() const {
  std::string all;
  for (size_t i = 0; i < items_.size() && all.size() < kBytesOfAll; ++i)
    absl::StrAppend(&all, model::FirstBytes(TextOf(i), kBytesOfAll), "\n");
  return all;
}

absl::StatusOr<TextLanguages> LanguageDetection::Take() {
  const bool target_is_candidate = candidates_.size() > choices_.size();
  std::string rest = MainLanguage();
  if (rest.empty()) {
    // Names and numbers are in no language, so all texts are read together.
    if (const auto together =
            items_.size() == 1 ? std::nullopt : ChooseLanguage(AllTexts(), chooser_);
        together.has_value()) {
      rest = together->language_code();
      for (TextItem& item : items_) item.detected = together;
    } else if (choices_.size() == 1) {
      rest = choices_.front();
    } else {
      return NotDetected(items_, choices_, field_);
    }
  }
  TextLanguages languages;
  std::map<std::string, size_t> groups;  // by language
  const bool detected = items_.front().detected.has_value();
  const std::string first = detected ? items_.front().detected->language_code() : rest;
  bool shared = true;
  double confidence = 0;
  int known = 0;
  for (TextItem& item : items_) {
    const std::string language = item.detected.has_value() ? item.detected->language_code() : rest;
    if (item.detected.has_value()) {
      confidence += item.detected->confidence();
      ++known;
    }
    shared &= language == first;
    if (target_is_candidate && language == target_language_) {
      languages.unchanged.push_back(std::move(item));
      continue;
    }
    const auto [group, added] = groups.emplace(language, languages.groups.size());
    if (added) languages.groups.push_back({.language = language, .items = {}});
    languages.groups[group->second].items.push_back(std::move(item));
  }
  if (shared && known > 0)
    languages.shared = Detected(first, static_cast<float>(confidence / known));
  return languages;
}

}  // namespace linnet::server
