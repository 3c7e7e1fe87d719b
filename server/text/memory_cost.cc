#include "server/text/memory_cost.h"

#include <algorithm>

#include "server/schedule/sequence.h"
#include "server/text/aligned_words.h"

namespace linnet::server {
namespace {

// The size of an allocation, with the overhead of the allocator and of a vector that grows by
// doubling.
constexpr int64_t Grown(int64_t bytes) { return 2 * bytes + 32; }

// Bytes of text per target token. Most pieces are shorter; longer ones are covered by the bound on
// the number of tokens, which few targets reach.
constexpr int64_t kTextBytesPerToken = 16;
// Text is stored in the segment's reply, in the whole text, and in the serialised message.
constexpr int64_t kTextCopies = 3;
// A small message of the reply (Word, WordAlignment, Hypothesis), including its serialised form.
constexpr int64_t kMessage = 128;
// The nodes of the queues in which a sequence waits, its sink, the name of its caller and its key.
constexpr int64_t kQueued = 1536;

}  // namespace

int64_t PrepareBytes(int64_t text_bytes) {
  // There are no more tokens than bytes. The segmenter's counts are stored beside the segments.
  return text_bytes * 2 * static_cast<int64_t>(sizeof(model::TokenId)) + text_bytes * 24;
}

int64_t EncodeBytes(int64_t text_bytes) {
  return kEncodeBytesPerByte * std::min(text_bytes, kMaxEncodedBytes) + 4096;
}

int64_t SegmentBytes(int64_t source_tokens) {
  constexpr int64_t kParts =
      sizeof(PreparedSegment) + sizeof(SequenceResult) + 4 * sizeof(model::TextSegment);
  return Grown(kParts) + sizeof(Sequence) + kQueued +
         3 * Grown(source_tokens * static_cast<int64_t>(sizeof(model::TokenId)));
}

int64_t TermBytes(const TermUse& use) {
  return Grown(sizeof(TermUse)) + 3 * Grown(static_cast<int64_t>(use.target.size())) + kMessage;
}

int64_t ResultBytes(const TextRequest& request, const model::SearchOptions& options,
                    int64_t source_tokens, bool align) {
  const int64_t tokens = options.max_target_tokens + 1;
  const int64_t text = tokens * kTextBytesPerToken;
  const int64_t hypothesis = sizeof(model::Hypothesis) + Grown(tokens * sizeof(model::TokenId)) +
                             Grown(tokens * sizeof(float));
  int64_t bytes = options.n_best * hypothesis + kTextCopies * text + 4 * kMessage;
  if (request.list_hypotheses)
    bytes += options.n_best * (kMessage + 2 * (text + tokens * sizeof(float)));
  if (request.word_scores) bytes += tokens * kMessage;
  if (align) {
    const auto alignments_per_word = static_cast<int64_t>(1 / kMinAlignmentWeight);
    bytes += source_tokens * tokens * sizeof(float) + tokens * alignments_per_word * kMessage +
             // The part that is kept for the second model: words, and pieces, of which a token may
             // have two.
             (request.second == nullptr ? 0 : source_tokens * tokens * sizeof(float)) *
                 (request.markup.has_value() ? 5 : 1) +
             // The table that matches the source words as written to the decoded ones.
             source_tokens * source_tokens * sizeof(int) + source_tokens * kMessage;
  }
  return bytes;
}

int64_t CopyBytes(const TextRequest& request, int64_t bytes) {
  int64_t sum = sizeof(model::Hypothesis) + kTextCopies * bytes + 4 * kMessage;
  if (request.list_hypotheses) sum += kMessage + 2 * bytes;
  // Words have a character and a blank at least.
  const int64_t words = (bytes + 1) / 2;
  if (request.word_scores) sum += words * kMessage;
  if (request.alignments) {
    sum += words * (kMessage + static_cast<int64_t>(2 * sizeof(WordRange)));
    // The part that is kept for the second model is a matrix of the words.
    if (request.second != nullptr) sum += words * words * static_cast<int64_t>(sizeof(float));
  }
  return sum;
}

}  // namespace linnet::server
