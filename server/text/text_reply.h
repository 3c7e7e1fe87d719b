#pragma once

#include <string>

#include "linnet/v1/text_service.pb.h"
#include "server/request/text_request.h"
#include "server/text/pivot_texts.h"
#include "server/text/prepared_text.h"
#include "server/text/text_warnings.h"

namespace linnet::server {

// The reply for a segment and its text, which starts at byte `begin` of the answer. With a `pivot`
// the segment is a part of its text, and is aligned to the source of that.
struct SegmentReply {
  linnet::v1::Segment segment;
  std::string text;
  Findings findings = {};
};
SegmentReply MakeReply(const TextRequest& request, const PreparedSegment& segment,
                       const SequenceResult& result, int begin,
                       const PivotSegment* pivot = nullptr);
// The same of a segment of the source whose pivot text the request's model has translated.
SegmentReply MakeReply(const TextRequest& request, const PivotSegment& pivot,
                       const DecodedText& translated, int begin);

linnet::v1::FinishReason ToFinishReason(bool ended_by_limit);

}  // namespace linnet::server
