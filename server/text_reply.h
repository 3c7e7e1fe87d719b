#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/segmenter.h"
#include "server/sequence.h"
#include "server/text_request.h"

namespace linnet::server {

// A segment of a text on its way: what goes into the engine, and what comes out.
struct SegmentWork {
  model::TextSegment place;  // in its text
  std::vector<model::TokenId> source;
  SequenceResult result;
};

// One text of a request.
struct TextWork {
  std::vector<SegmentWork> segments;
};

// Splits one text as the request asks and tokenises it. INVALID_ARGUMENT, put down to `field`, if
// the model cannot read it.
absl::StatusOr<TextWork> PrepareText(const TextRequest& request, const std::string& text,
                                     absl::string_view field);

// Puts the texts of the answer together: each segment's best hypothesis, and between them what lies
// between the segments. `works` are parallel to the request's contents, every result filled in.
void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::TranslateResponse& response);
void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::SummarizeResponse& response);

}  // namespace linnet::server
