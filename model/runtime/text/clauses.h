#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/segmenter.h"

namespace linnet::model {

// Splits a sentence of more than `max_tokens` without white space around it into the largest parts
// that fit: at clause marks, otherwise at white space, otherwise between graphemes. White space
// between parts belongs to none. Text and counter must outlive it.
class SentenceCutter {
 public:
  SentenceCutter(absl::string_view text, int begin, int max_tokens,
                 const TokenCounter& count_tokens);
  ~SentenceCutter();

  // Returns the next part, given that the sentence ends at `known` or, unless `ends`, behind it.
  // Nothing if more of the sentence must be known, or after the last part. `known` never decreases.
  //
  // Returns InvalidArgumentError if a single grapheme does not fit.
  absl::StatusOr<std::optional<TextSegment>> Next(int known, bool ends);

 private:
  using Fits = std::function<bool(int)>;  // true if the text from begin_ to this offset fits
  struct Graphemes;

  void FindCuts(int known, bool ends);
  std::optional<int> FindUnfit(int known, bool ends, const Fits& fits);
  absl::Status FindGraphemes(int to);
  absl::StatusOr<std::optional<int>> CutBetweenGraphemes(int known, bool ends, int unfit,
                                                         const Fits& fits);

  const absl::string_view text_;
  const int sentence_begin_;
  const int max_tokens_;
  const TokenCounter& count_tokens_;
  int begin_;      // of the next part
  int64_t bytes_;  // of the next text to try from there
  // Offsets at which the sentence may be cut, ascending, of text[begin, cuts_known_); the end of
  // the sentence is the last one once it is known. None follows white space.
  std::vector<int> clauses_, words_;
  int cuts_known_;
  bool end_known_ = false;
  std::unique_ptr<Graphemes> graphemes_;  // made when first needed
};

}  // namespace linnet::model
