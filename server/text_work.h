#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/segmenter.h"
#include "server/sequence.h"
#include "server/text_request.h"

namespace linnet::server {

// A segment of a text on its way: what goes into the engine, and what comes out.
struct SegmentWork {
  model::TextSegment place;  // in its text
  std::string gap;           // what stands before it in the answer
  std::vector<model::TokenId> source;
  SequenceResult result;
};

// One text of a request.
struct TextWork {
  std::vector<SegmentWork> segments;
  std::string tail;        // what stands behind the last segment in the answer
  bool truncated = false;  // its end is in no segment
};

// Splits one text as the request asks and tokenises it. INVALID_ARGUMENT, put down to `field`, if
// the model cannot read it.
absl::StatusOr<TextWork> PrepareText(const TextRequest& request, const std::string& text,
                                     absl::string_view field);

}  // namespace linnet::server
