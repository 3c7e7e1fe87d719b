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
#include "server/request/language_detector.h"
#include "server/request/language_scores.h"

namespace linnet::server {
namespace {

// Only so much of each text is read: a sentence or two are enough.
constexpr size_t kBytesOfText = 512;
// The same for all texts together, if none of them is conclusive.
constexpr size_t kBytesOfAll = 4096;

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

// The language of most texts, by their bytes. Empty if none is known.
std::string MainLanguage(const std::vector<TextItem>& items) {
  std::map<std::string, int64_t> bytes;
  for (const TextItem& item : items) {
    if (item.detected.has_value()) bytes[item.detected->language_code()] += item.bytes();
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : most->first;
}

std::string AllTexts(const std::vector<TextItem>& items) {
  std::string all;
  for (const TextItem& item : items) {
    if (all.size() >= kBytesOfAll) break;
    absl::StrAppend(&all, model::FirstBytes(*item.text, kBytesOfAll), "\n");
  }
  return all;
}

absl::Status NotDetected(const std::vector<TextItem>& items,
                         const std::vector<std::string>& choices, absl::string_view field) {
  return BadField(field, Reason::kLanguageUnknown,
                  absl::StrCat("is not set and could not be detected from the ",
                               items.size() == 1 ? "text" : "texts", ": set it to one of ",
                               absl::StrJoin(choices, ", "), ", or name a model"));
}

}  // namespace

absl::StatusOr<TextLanguages> DetectLanguages(std::vector<TextItem> items,
                                              const std::vector<std::string>& choices,
                                              const std::string& target_language,
                                              absl::string_view field) {
  const std::vector<std::string> candidates = Candidates(choices, target_language);
  const bool target_is_candidate = candidates.size() > choices.size();
  const LanguageChooser chooser(candidates);
  for (TextItem& item : items)
    item.detected = ChooseLanguage(model::FirstBytes(*item.text, kBytesOfText), chooser);
  std::string rest = MainLanguage(items);
  if (rest.empty()) {
    // Names and numbers are in no language, so all texts are read together.
    if (const auto together =
            items.size() == 1 ? std::nullopt : ChooseLanguage(AllTexts(items), chooser);
        together.has_value()) {
      rest = together->language_code();
      for (TextItem& item : items) item.detected = together;
    } else if (choices.size() == 1) {
      rest = choices.front();
    } else {
      return NotDetected(items, choices, field);
    }
  }
  TextLanguages languages;
  std::map<std::string, size_t> groups;  // by language
  const bool detected = items.front().detected.has_value();
  const std::string first = detected ? items.front().detected->language_code() : rest;
  bool shared = true;
  double confidence = 0;
  int known = 0;
  for (TextItem& item : items) {
    const std::string language = item.detected.has_value() ? item.detected->language_code() : rest;
    if (item.detected.has_value()) {
      confidence += item.detected->confidence();
      ++known;
    }
    shared &= language == first;
    if (target_is_candidate && language == target_language) {
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
