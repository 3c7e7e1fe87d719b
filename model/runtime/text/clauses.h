#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/part_length.h"
#include "model/runtime/text/segmenter.h"

namespace linnet::model {

// Splits a sentence of more than `max_tokens`, or of more than MaxSegmentBytes, without white space
// around it into parts that fit: at clause marks, otherwise at white space, otherwise between
// graphemes. A part has at least 7 of 8 of these tokens, or is the largest that ends so. White
// space between parts belongs to none. Text and counter must outlive it.
class SentenceCutter {
 public:
  // `length`: of the first part, as far as the caller knows it. Must outlive it.
  SentenceCutter(absl::string_view text, int begin, int max_tokens,
                 const TokenCounter& count_tokens, PartLength& length);
  ~SentenceCutter();

  // Returns the next part, given that the sentence ends at `known` or, unless `ends`, behind it.
  // Nothing if more of the sentence must be known, or after the last part. `known` never decreases.
  //
  // Returns InvalidArgumentError if a single grapheme does not fit.
  absl::StatusOr<std::optional<TextSegment>> Next(int known, bool ends);

 private:
  struct Graphemes;

  void FindCuts(int known, bool ends);
  // Counts the tokens of text[begin_, end).
  bool Fits(int end);
  int CutThatFits(std::span<const int> cuts);
  std::optional<int> FindLimit(int known, bool ends);
  absl::Status FindGraphemes(int to);
  absl::StatusOr<std::optional<int>> CutBetweenGraphemes(int known, bool ends, int unfit);
  void StartPart(int begin, int64_t bytes);

  const absl::string_view text_;
  const int sentence_begin_;
  const int max_tokens_;
  const int64_t max_bytes_;
  const TokenCounter& count_tokens_;
  int begin_ = 0;       // of the next part
  int64_t bytes_ = 0;   // of the next text to try from there
  int64_t step_ = 1;    // bytes by which that grows at least
  int fitting_ = 0;     // end of the longest text from there that was seen to fit
  bool fills_ = false;  // of the last one that fitted: nearly all tokens of a part
  PartLength& length_;  // of the next part
  // Offsets at which the sentence may be cut, ascending, of text[begin, cuts_known_); the end of
  // the sentence is the last one once it is known. None follows white space.
  std::vector<int> clauses_, words_;
  int cuts_known_;
  bool end_known_ = false;
  std::unique_ptr<Graphemes> graphemes_;  // made when first needed
};

}  // namespace linnet::model
