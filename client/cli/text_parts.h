// Documents that are more than goes into one call.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// What a part may have: large enough to fill a batch of the server, small enough for the limits and
// timeouts of any.
inline constexpr size_t kBytesPerPart = 64 << 10;

// Cuts a text behind new lines into parts of at most `max_bytes`; a longer line is a part of its
// own. Together they are the text.
std::vector<absl::string_view> SplitAtLines(absl::string_view text, size_t max_bytes);

// Client::Translate, but that a request of one text larger than kBytesPerPart goes in several
// calls, and so does one that the server says is too much at once. A new line always ends a
// sentence, so the answer is the one that a single call would give.
absl::StatusOr<v1::TranslateResponse> TranslateInParts(Client& client,
                                                       const v1::TranslateRequest& request,
                                                       const CallOptions& options);

}  // namespace linnet::client
