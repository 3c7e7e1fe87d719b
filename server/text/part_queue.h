#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "linnet/v1/text_service.pb.h"

namespace linnet::server {

// Parts of a stream that wait to be sent. Parts of the same segment are merged, so the queue never
// needs more memory than the answer. Not thread-safe.
class PartQueue {
 public:
  void Push(linnet::v1::TextPart part) {
    if (!parts_.empty() && !parts_.back().has_segment() &&
        parts_.back().content_index() == part.content_index() &&
        parts_.back().segment_index() == part.segment_index()) {
      parts_.back().mutable_text()->append(part.text());
      if (part.has_segment()) parts_.back().mutable_segment()->Swap(part.mutable_segment());
    } else {
      parts_.push_back(std::move(part));
    }
  }

  std::optional<linnet::v1::TextPart> Pop() {
    if (parts_.empty()) return std::nullopt;
    std::optional<linnet::v1::TextPart> part = std::move(parts_.front());
    parts_.pop_front();
    return part;
  }

 private:
  std::deque<linnet::v1::TextPart> parts_;
};

}  // namespace linnet::server
