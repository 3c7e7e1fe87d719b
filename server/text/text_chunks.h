#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/runtime/text/segmenter.h"

namespace linnet::server {

// Joins the sentences of a long text into chunks that the model reads at once, of about equal
// length: the min number of chunks, or one more. When truncating there is the first chunk only, as
// long as possible.
//
// Decides alone: the caller tokenises each chunk, whose tokens may differ from those of its
// sentences.
class TextChunks {
 public:
  // `max_tokens`: of a chunk, without eos.
  TextChunks(int max_tokens, int64_t max_bytes, bool truncate)
      : max_tokens_(max_tokens), max_bytes_(max_bytes), truncate_(truncate) {}

  // Adds the next sentence, which has tokens.
  void Add(const model::TextSegment& place, int64_t tokens);
  // True if further sentences would change nothing.
  bool full() const { return truncate_ && tokens_ > max_tokens_; }

  // The next chunk, or nothing after the last one. Call it when all sentences are there.
  std::optional<model::TextSegment> Next();
  // Ends the chunk, which has so many tokens. False if these are too many, and Next returns one of
  // fewer sentences.
  bool Accept(int64_t tokens);

 private:
  struct Sentence {
    model::TextSegment place;
    int64_t tokens = 0;
  };

  const int max_tokens_;
  const int64_t max_bytes_;
  const bool truncate_;
  std::vector<Sentence> sentences_;
  int64_t tokens_ = 0;          // of all sentences
  size_t first_ = 0, end_ = 0;  // sentences of the next chunk; empty if it is not chosen
};

}  // namespace linnet::server
