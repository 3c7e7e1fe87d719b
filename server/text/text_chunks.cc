#include "server/text/text_chunks.h"

namespace linnet::server {

void TextChunks::Add(const model::TextSegment& place, int64_t tokens) {
  sentences_.push_back({place, tokens});
  tokens_ += tokens;
}

std::optional<model::TextSegment> TextChunks::Next() {
  if (first_ >= sentences_.size()) return std::nullopt;
  if (end_ <= first_) {
    const int64_t chunks = (tokens_ + max_tokens_ - 1) / max_tokens_;
    const int64_t aim = truncate_ ? max_tokens_ : (tokens_ + chunks - 1) / chunks;
    end_ = first_;
    for (int64_t tokens = 0; end_ < sentences_.size() && tokens < aim; ++end_) {
      tokens += sentences_[end_].tokens;
      const bool large = sentences_[end_].place.end - sentences_[first_].place.begin > max_bytes_;
      if ((tokens > max_tokens_ || large) && end_ > first_) break;
    }
  }
  const model::TextSegment& last = sentences_[end_ - 1].place;
  model::TextSegment chunk = sentences_[first_].place;
  chunk.end = last.end;
  chunk.part_of_sentence |= last.part_of_sentence;
  return chunk;
}

bool TextChunks::Accept(int64_t tokens) {
  if (tokens > max_tokens_ && end_ - 1 > first_) {
    --end_;
    return false;
  }
  first_ = truncate_ ? sentences_.size() : end_;
  return true;
}

}  // namespace linnet::server
