#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/bundle/language_code.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// "en to de/fr, de to en"; of many pairs only the languages of each side.
std::string PairSummary(const std::vector<linnet::v1::LanguageTokens>& pairs);

// The language pairs of a model, with their tokens. Of a summariser with several styles each
// language has an entry per style. Immutable, so thread-safe; pointers to entries live as long as
// it does and is not moved.
class LanguagePairs {
 public:
  LanguagePairs() = default;
  // The manifest's `languages`, its own pair first; without them that pair, which has no tokens.
  explicit LanguagePairs(const linnet::v1::BundleManifest& manifest);

  const std::vector<linnet::v1::LanguageTokens>& all() const { return pairs_; }
  // The manifest's own pair.
  const linnet::v1::LanguageTokens& own() const { return pairs_.front(); }
  // The pair with these tags (BCP-47, ignoring case), or null; its first entry if it has several
  // styles. An empty tag stands for any: then the first pair that fits.
  const linnet::v1::LanguageTokens* Exact(absl::string_view source, absl::string_view target) const;
  // A pair and how far it is from what was asked for: the sum of both LanguageDistances.
  struct Match {
    const linnet::v1::LanguageTokens* pair = nullptr;
    int distance = 0;
  };
  // The nearest pair for these tags, the first of several; without a pair if there is none. An
  // empty tag stands for any.
  Match Nearest(absl::string_view source, absl::string_view target) const;
  // The pair of that.
  const linnet::v1::LanguageTokens* Find(absl::string_view source, absl::string_view target) const {
    return Nearest(source, target).pair;
  }
  // The entry of this pair with a style, the first one if the style is unset, or null.
  const linnet::v1::LanguageTokens* WithStyle(const linnet::v1::LanguageTokens& pair,
                                              linnet::v1::SummaryStyle style) const;
  // The styles of all pairs, or of one, without duplicates, in the order of the entries.
  std::vector<linnet::v1::SummaryStyle> Styles() const;
  std::vector<linnet::v1::SummaryStyle> Styles(const linnet::v1::LanguageTokens& pair) const;
  // Source languages of the pairs for this target, and target languages of those for this source,
  // as Find matches them (empty: any), without duplicates, in the order of the pairs.
  std::vector<std::string> Sources(absl::string_view target) const;
  std::vector<std::string> Targets(absl::string_view source) const;
  // "en to de/fr, de to en"; of many pairs only the languages of each side.
  std::string Summary() const { return PairSummary(pairs_); }
  // The same of a summariser: "en".
  std::string Languages() const;

  // The largest number of forced target ids, and of ids around a source.
  int max_forced_tokens() const;
  int max_source_tokens() const;

 private:
  std::vector<linnet::v1::LanguageTokens> pairs_;
  // The tags that are served on one side, in order, without duplicates.
  using Tags = std::vector<std::pair<std::string, LanguageParts>>;
  static void AddTag(const std::string& tag, Tags& tags);

  // Indices of the first entries by tags, which are in lower case or "".
  std::map<std::pair<std::string, std::string>, int> numbers_;
  Tags sources_, targets_;
};

// Checks `languages`, `control_ids` and the languages of golden examples. Returns
// FailedPreconditionError with the field, its value and its allowed values. All other fields have
// been checked.
absl::Status CheckLanguages(const linnet::v1::BundleManifest& manifest);

// The ids of each vocabulary that are no text, ascending: BundleManifest.control_ids and the tokens
// of `languages`.
std::vector<TokenId> SourceControlIds(const linnet::v1::BundleManifest& manifest);
std::vector<TokenId> TargetControlIds(const linnet::v1::BundleManifest& manifest);

// The name of a style for people: "title".
std::string StyleName(linnet::v1::SummaryStyle style);
// "title, sentence", or "none".
std::string StyleNames(const std::vector<linnet::v1::SummaryStyle>& styles);
// The style with this name, or nothing.
std::optional<linnet::v1::SummaryStyle> StyleNamed(absl::string_view name);

// True for languages whose words no blank separates: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
bool IsUnspacedLanguage(absl::string_view code);

// True for well-formed BCP-47 with a language of two or three letters: "de", "pt-BR", "zh-Hant".
bool IsLanguageCode(const std::string& code);

}  // namespace linnet::model
