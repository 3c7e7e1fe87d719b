#include "server/request/language_detector.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "model/runtime/bundle/language_code.h"
#include "model/runtime/text/first_bytes.h"
#include "server/request/language_scores.h"

namespace linnet::server {
namespace {

// Min share of the main language. It leaves room for a name or a quotation in another language.
constexpr float kMinShare = 0.9f;
// The min lead of a language over the others. Among texts of 5 characters that reach it, 99 in a
// hundred are in the chosen one of two languages, and 98 in the chosen one of five; among those of
// 20 characters, 99.5 and 99.0 (tests/bench/server/detection.py).
constexpr double kMinMargin = 5;
// The same against all candidates, for a language that is none of them. It finds 96 in a hundred
// texts of 80 characters in such a language; names of a foreign language reach it rarely.
constexpr double kOtherMargin = 30;
// CLD2's scores are logarithms with a base that it does not tell; this makes the confidence about
// the share of texts that are right.
constexpr double kNatsPerScore = 0.7;
// Shorter texts are compared with all languages.
constexpr size_t kShortBytes = 200;
// Farther than every LanguageDistance.
constexpr int kOtherVariety = 9;

// BCP-47 for a code of CLD2's, some of which are from before it.
std::string CanonicalCode(absl::string_view code) {
  return model::CanonicalLanguage(code).value_or(std::string(code));
}

}  // namespace

LanguageGuess DetectLanguage(absl::string_view text) {
  text = model::FirstBytes(text, kMaxBytesRead);
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
  // CLD2 calls a few words reliable that fit other languages better.
  if (guess.reliable && text.size() < kShortBytes) {
    const LanguageScores scores(text);
    const std::string& seen = guess.languages.front().code;
    guess.reliable =
        scores.max_score() <= scores.Of(ScoredLanguage(seen)) || AreClose(scores.nearest(), seen);
  }
  return guess;
}

LanguageChooser::LanguageChooser(const std::vector<std::string>& candidates) {
  for (const std::string& code : candidates) {
    ScoredLanguage language(code);
    const int distance =
        model::LanguageDistance(model::LanguageParts(code), model::LanguageParts(language.primary))
            .value_or(kOtherVariety);
    candidates_.push_back({std::move(language), distance});
  }
}

LanguageChoice LanguageChooser::Choose(absl::string_view text) const {
  LanguageChoice choice;
  if (candidates_.empty()) return choice;
  text = model::FirstBytes(text, kMaxBytesRead);
  const LanguageScores scores(text);
  std::vector<double> scored;
  const Candidate* chosen = nullptr;
  double best = 0;
  for (const Candidate& candidate : candidates_) {
    const double score = scores.Of(candidate.language);
    scored.push_back(score);
    // A text may fit varieties equally well: then the expected one is taken.
    const bool nearer = chosen != nullptr && score == best &&
                        candidate.language.primary == chosen->language.primary &&
                        candidate.distance < chosen->distance;
    if (chosen != nullptr && score <= best && !nearer) continue;
    best = score;
    chosen = &candidate;
  }
  double margin = std::numeric_limits<double>::infinity();
  std::map<absl::string_view, double> others;  // the best variety of each other language
  for (size_t i = 0; i < scored.size(); ++i) {
    const std::string& primary = candidates_[i].language.primary;
    if (primary == chosen->language.primary) continue;
    margin = std::min(margin, best - scored[i]);
    const auto [other, added] = others.emplace(primary, scored[i]);
    other->second = std::max(other->second, scored[i]);
  }
  double sum = 1;
  for (const auto& [primary, score] : others) sum += std::exp(kNatsPerScore * (score - best));
  choice.code = chosen->language.code;
  choice.confidence = static_cast<float>(1 / sum);
  // One language alone has nothing to be compared with.
  choice.reliable = others.empty() ? best > 0 : margin >= kMinMargin;
  if (scores.max_score() - best < kOtherMargin || AreClose(scores.nearest(), choice.code))
    return choice;
  LanguageGuess guess = DetectLanguage(text);
  if (guess.known() && guess.languages.front().share >= kMinShare &&
      PrimaryLanguage(guess.languages.front().code) == PrimaryLanguage(scores.nearest())) {
    choice.other = std::move(guess.languages.front());
    choice.reliable = false;
  }
  return choice;
}

LanguageChoice ChooseLanguage(absl::string_view text, const std::vector<std::string>& candidates) {
  return LanguageChooser(candidates).Choose(text);
}

std::optional<LanguageGuess::Language> OtherLanguage(absl::string_view text,
                                                     absl::string_view language) {
  LanguageGuess guess = DetectLanguage(text);
  if (!guess.known() || guess.languages.front().share < kMinShare) return std::nullopt;
  const std::string& seen = guess.languages.front().code;
  if (PrimaryLanguage(seen) == PrimaryLanguage(language)) return std::nullopt;
  const LanguageScores scores(model::FirstBytes(text, kMaxBytesRead));
  if (scores.Of(ScoredLanguage(seen)) - scores.Of(ScoredLanguage(std::string(language))) <
      kMinMargin)
    return std::nullopt;
  return std::move(guess.languages.front());
}

}  // namespace linnet::server
