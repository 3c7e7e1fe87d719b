#include "server/request/language_detector.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace linnet::server {
namespace {

// Min share of the main language. It leaves room for a name or a quotation in another language.
constexpr float kMinShare = 0.9f;

// Maps the codes that CLD2 has from before BCP-47.
std::string CanonicalCode(absl::string_view code) {
  constexpr struct {
    const char *old, *canonical;
  } kRenamed[] = {{"iw", "he"}, {"in", "id"}, {"jw", "jv"},
                  {"ji", "yi"}, {"mo", "ro"}, {"tl", "fil"}};
  for (const auto& renamed : kRenamed) {
    if (code == renamed.old) return renamed.canonical;
  }
  return std::string(code);
}

// The start of the text, cut between two characters.
absl::string_view Start(absl::string_view text) {
  if (text.size() <= kMaxBytesRead) return text;
  size_t end = kMaxBytesRead;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// The language without script and region. Written languages that one detector distinguishes and
// another does not are mapped to one code.
std::string PrimaryLanguage(absl::string_view code) {
  const std::string language =
      CanonicalCode(absl::AsciiStrToLower(code.substr(0, code.find_first_of("-_"))));
  constexpr struct {
    const char *one, *group;
  } kGroups[] = {{"nb", "no"}, {"nn", "no"},  {"hr", "sr"}, {"bs", "sr"},
                 {"sh", "sr"}, {"cnr", "sr"}, {"ms", "id"}, {"cmn", "zh"}};
  for (const auto& group : kGroups) {
    if (language == group.one) return group.group;
  }
  return language;
}

}  // namespace

LanguageGuess DetectLanguage(absl::string_view text) {
  text = Start(text);
  const CLD2::CLDHints no_hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING,
                                   CLD2::UNKNOWN_LANGUAGE};
  CLD2::Language languages[3];
  int percents[3];
  double scores[3];
  int text_bytes = 0;
  LanguageGuess guess;
  CLD2::ExtDetectLanguageSummary(text.data(), static_cast<int>(text.size()),
                                 /*is_plain_text=*/true, &no_hints, /*flags=*/0, languages,
                                 percents, scores, /*resultchunkvector=*/nullptr, &text_bytes,
                                 &guess.reliable);
  for (int i = 0; i < 3; ++i) {
    if (languages[i] == CLD2::UNKNOWN_LANGUAGE || percents[i] <= 0) continue;
    guess.languages.push_back({.code = CanonicalCode(CLD2::LanguageCode(languages[i])),
                               .share = static_cast<float>(percents[i]) / 100});
  }
  if (guess.languages.empty()) guess.reliable = false;
  return guess;
}

std::string ServedLanguage(absl::string_view code, const std::vector<std::string>& served) {
  const auto found = std::find_if(served.begin(), served.end(), [&](const std::string& each) {
    return absl::EqualsIgnoreCase(each, code) ||
           absl::EqualsIgnoreCase(each, code.substr(0, code.find('-')));
  });
  if (found != served.end()) return std::string(code);
  const auto similar = std::find_if(served.begin(), served.end(), [&](const std::string& each) {
    return PrimaryLanguage(each) == PrimaryLanguage(code);
  });
  return similar == served.end() ? std::string(code) : *similar;
}

std::optional<LanguageGuess::Language> OtherLanguage(absl::string_view text,
                                                     absl::string_view language) {
  LanguageGuess guess = DetectLanguage(text);
  if (!guess.known() || guess.languages.front().share < kMinShare) return std::nullopt;
  if (PrimaryLanguage(guess.languages.front().code) == PrimaryLanguage(language))
    return std::nullopt;
  return std::move(guess.languages.front());
}

}  // namespace linnet::server
