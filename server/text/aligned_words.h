#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/tokenizer/tokenizer.h"

namespace linnet::server {

// The parts of a text that are aligned.
enum class WordUnit {
  kWord,   // characters between white space
  kPiece,  // model::PiecesOf
};

// Bytes [begin, end) of a word in its text.
struct WordRange {
  int begin = 0;
  int end = 0;
  friend auto operator<=>(const WordRange&, const WordRange&) = default;
};

std::vector<WordRange> SplitUnits(absl::string_view text, WordUnit unit);

// A word of a text and the tokens [first_token, end_token) that produce some of it.
struct AlignedWord {
  int begin = 0;  // bytes [begin, end) of the text
  int end = 0;
  size_t first_token = 0;
  size_t end_token = 0;
};

// Returns the words of `restored`, the decoded text of `tokens` in `capitals`, if any
// (Tokenizer::Decode), with its spans. A token may belong to two words.
std::vector<AlignedWord> AlignedWords(const model::Tokenizer& tokenizer,
                                      std::span<const model::TokenId> tokens,
                                      const model::RestoredText& restored,
                                      absl::string_view capitals = {},
                                      WordUnit unit = WordUnit::kWord);

// Returns the words of a source as written. The decoded text of its tokens is normalised, so its
// words are matched to those of `text`: one to one if both have the same number, otherwise by
// minimum edit distance. The words that overlap a span with a stand-in are one. The result is in
// the order of the tokens; several entries may have the same bytes.
std::vector<AlignedWord> SourceWords(const model::Tokenizer& tokenizer,
                                     std::span<const model::TokenId> tokens, absl::string_view text,
                                     std::span<const model::ProtectedSpan> spans = {},
                                     absl::string_view capitals = {},
                                     WordUnit unit = WordUnit::kWord);

// The attention of target words on source words. Borrows the attention.
class WordAttention {
 public:
  // `attention` is [target tokens, source tokens], row-major; if it is empty there are no words.
  WordAttention(std::span<const AlignedWord> source, size_t source_tokens,
                std::span<const float> attention);

  // The words of the source, in order, each once.
  const std::vector<WordRange>& source() const { return source_; }
  // The weight of each of them for a target word: the mean over its tokens of the sum over the
  // tokens of the source word.
  std::vector<float> SourceWeights(const AlignedWord& target) const;

 private:
  std::span<const float> attention_;
  size_t source_tokens_;
  std::vector<WordRange> source_;
  std::vector<int> word_of_;  // of each source token, an index into source_; or -1
};

// Adds for a target word the source word with the max weight and all others of at least
// kMinAlignmentWeight. `weights` is parallel to `source`.
inline constexpr float kMinAlignmentWeight = 0.1f;
void AddWordAlignments(
    std::span<const WordRange> source, std::span<const float> weights, int source_begin,
    const AlignedWord& target, int target_begin,
    google::protobuf::RepeatedPtrField<linnet::v1::WordAlignment>& word_alignments);

}  // namespace linnet::server
