#pragma once

#include <string>
#include <vector>

#include "linnet/v1/text_service.pb.h"
#include "server/text/text_request.h"
#include "server/text/text_work.h"

namespace linnet::server {

// A segment of the answer and its text, where `begin` bytes of the answer stand before that.
struct SegmentReply {
  linnet::v1::Segment segment;
  std::string text;
};
SegmentReply ReplyOf(const TextRequest& request, const SegmentWork& work, int begin);

// Puts the texts of the answer together: each segment's best hypothesis, and between them their
// gaps. `works` are parallel to the request's contents, every result filled in.
void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::TranslateResponse& response);
void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::SummarizeResponse& response);
void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::ScoreResponse& response);

}  // namespace linnet::server
