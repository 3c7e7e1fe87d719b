#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "server/request/text_request.h"

namespace linnet::server {

// Holds memory that is about to be allocated, in bytes.
using HoldMemory = std::function<absl::Status(int64_t)>;

// Tokenises a text, or only its start if that alone has more than `max_tokens`, or if the text has
// more than model::MaxSegmentBytes. Few texts are so long and have so few tokens; their memory is
// held until the call ends.
absl::StatusOr<model::TokenizedText> ReadStart(const model::Tokenizer& tokenizer,
                                               absl::string_view text,
                                               const model::ReadOptions& options, int max_tokens,
                                               const HoldMemory& hold);

// How the source of an item is read. A pair to be scored is read in lower case if both texts are
// in capitals, so that the score of a translation in capitals is that of its search.
model::ReadOptions SourceReading(const TextRequest& request, const TextItem& item);

// Tokenises the target of an item, in lower case if its source is; eos is last.
absl::StatusOr<std::vector<model::TokenId>> ReadTarget(const TextRequest& request,
                                                       const TextItem& item, bool lowered,
                                                       const HoldMemory& hold);

// The error for a text of that many bytes with too many tokens. `limit` says what `max` limits, and
// what to do. If the text is long, only its start was tokenised.
absl::Status TooManyTokens(absl::string_view field, size_t text_bytes, size_t tokens, int max,
                           absl::string_view limit);

// The error for a text of too many bytes (model::MaxSegmentBytes) in few tokens.
absl::Status TooManyBytes(absl::string_view field, size_t text_bytes, int64_t max);

// The error for a text that the tokenizer cannot read.
absl::Status Unreadable(absl::string_view field, absl::Status status);

}  // namespace linnet::server
