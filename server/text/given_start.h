#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/search/spelled_start.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "server/request/text_request.h"
#include "server/text/text_reading.h"

namespace linnet::server {

struct PreparedText;

// The start of the answer to a segment, from TranslateRequest.target_prefix.
struct GivenStart {
  std::string text;                         // byte for byte
  std::string as_read;                      // as the model writes it: with stand-ins, normalised
  std::vector<model::TokenId> tokens = {};  // forced
  std::shared_ptr<const model::SpelledStart> spelled = nullptr;  // behind them
};

// Gives the sentences of the request's target_prefix to the segments of its text, which is
// complete: the first sentence to the first segment, and so on; what is left to the last segment.
// All but the last sentence are whole answers, which the model only scores. Returns how much work
// that was (model::TextSplitter::Step), or INVALID_ARGUMENT.
absl::StatusOr<int64_t> GiveStarts(const TextRequest& request, const HoldMemory& hold,
                                   PreparedText& text);

// Lets an answer, whose decoded text is `decoded`, begin with the given start.
void BeginWith(const GivenStart& start, absl::string_view decoded, model::RestoredText& answer);

}  // namespace linnet::server
