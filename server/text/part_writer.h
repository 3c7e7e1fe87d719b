#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "server/text/text_request.h"
#include "server/text/text_work.h"

namespace linnet::server {

// The parts of a stream, in order, from what becomes certain of one segment after the other.
//
// What was written is never taken back: the parts of a text, one behind the other, are at any time
// the start of the text that FillReply makes in the end. Not thread-safe.
class PartWriter {
 public:
  // Both outlive the writer; `works` keep their place and number.
  PartWriter(const TextRequest& request, const std::vector<TextWork>& works);

  // Every segment is written.
  bool finished() const { return content_ == works_.size(); }
  // The segment that comes next, counted through all texts.
  size_t next() const { return next_; }

  // The next segment's target will start with these tokens: a part, if that makes more text
  // certain.
  std::optional<linnet::v1::TextPart> Stable(std::span<const model::TokenId> tokens);
  // The next segment has its result: its last part. InternalError if what was sent does not start
  // it.
  absl::StatusOr<linnet::v1::TextPart> Done();

 private:
  linnet::v1::TextPart PartOf(std::string text);

  const TextRequest& request_;
  const std::vector<TextWork>& works_;
  size_t content_ = 0;
  size_t segment_ = 0;  // of the content
  size_t next_ = 0;
  int begin_ = 0;     // bytes of the content's answer before the segment and its gap
  std::string sent_;  // of the segment, without its gap
  bool gap_sent_ = false;
};

}  // namespace linnet::server
