#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/runtime/text/alphabet.h"

namespace linnet::server {

// A language that texts are compared with (BCP-47). Parsing the code takes longer than a
// comparison, so this is done once for many texts. Immutable.
struct ScoredLanguage {
  explicit ScoredLanguage(const std::string& code);

  std::string code;
  std::string primary;              // PrimaryLanguage
  std::vector<int> numbers;         // of CLD2's languages that it stands for
  const model::Alphabet* alphabet;  // kept by this file
};

// Scores how well a text fits each language: the log-probabilities of its words and character
// quadgrams in CLD2's tables, as a sum. CLD2 itself only names the winner among all of its
// languages, which is of no use for a short text when two or twenty languages can be served: "Onde
// está o gato?" wins for Kinyarwanda. These scores can be compared among any languages. Immutable.
class LanguageScores {
 public:
  // Reads the text, which is UTF-8. Takes some microseconds for each 100 bytes.
  explicit LanguageScores(absl::string_view text);

  // The score of a language, less a penalty for letters that its alphabet in CLDR does not have.
  // Languages that CLD2 does not distinguish share a score.
  double Of(const ScoredLanguage& language) const;
  // The language with the largest score of all that CLD2 knows, or "" if no word is known. Its
  // score, without a penalty, is `max_score`.
  const std::string& nearest() const { return nearest_; }
  double max_score() const { return max_score_; }

 private:
  std::vector<double> scores_;  // by CLD2's number of the language
  model::LetterCounts letters_;
  std::string nearest_;
  double max_score_ = 0;
};

// The language without script and region, in lower case. Written languages that one detector
// distinguishes and another does not are mapped to one code: "no" for "nb", "id" for "ms".
std::string PrimaryLanguage(absl::string_view code);

// True if CLD2 says that it confuses these two, such as Czech and Slovak.
bool AreClose(absl::string_view a, absl::string_view b);

}  // namespace linnet::server
