#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "server/request/text_request.h"
#include "server/text/prepared_text.h"

namespace linnet::server {

// Writes the parts of a stream, in order, one segment after the other.
//
// Written text is never revised: the concatenated parts of a text are at any time a prefix of
// the text that the stage assembles in the end. Not thread-safe.
class PartWriter {
 public:
  // Both must outlive the writer; `texts` must not move or change in number.
  PartWriter(const TextRequest& request, const std::vector<DecodedText>& texts);

  // True if every segment is written.
  bool finished() const { return content_ == texts_.size(); }
  // True if the next text has no segments: Done writes it without a result.
  bool next_is_empty() const { return texts_[content_].results.empty(); }
  // Index of the next segment, across all texts.
  size_t next() const { return next_; }

  // The next segment's target will start with these tokens. Returns a part if that makes more text
  // stable.
  std::optional<linnet::v1::TextPart> Stable(std::span<const model::TokenId> tokens);
  // The next segment has its result. Returns its last part, or InternalError if the text sent is
  // not a prefix of it.
  absl::StatusOr<linnet::v1::TextPart> Done();

 private:
  linnet::v1::TextPart MakePart(std::string text);

  const TextRequest& request_;
  const std::vector<DecodedText>& texts_;
  size_t content_ = 0;
  size_t segment_ = 0;  // index within the content
  size_t next_ = 0;
  int begin_ = 0;     // bytes of the content's answer before the segment and its gap
  std::string sent_;  // text of the segment so far, without its gap
  bool gap_sent_ = false;
};

}  // namespace linnet::server
