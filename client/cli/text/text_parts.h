// Splits documents that are too large for one call.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Max bytes of a part: large enough to fill a batch of a server, small enough for the limits and
// timeouts of any server.
inline constexpr size_t kBytesPerPart = 64 << 10;

// Splits a text after newlines into parts of at most `max_bytes`; a longer line is a part of its
// own. The concatenated parts are the text. `at_paragraphs` prefers blank lines, so that the lines
// of a paragraph can be joined.
std::vector<absl::string_view> SplitAtLines(absl::string_view text, size_t max_bytes,
                                            bool at_paragraphs = false);
// True if the server joins the lines of paragraphs.
bool JoinsLines(const v1::TranslateRequest& request);

// True if the server refused a call whose parts it may take: it is too large, or could not be
// answered before its deadline.
bool NeedsSmallerParts(const absl::Status& status);

// The parts of a text are in one language: uses the one that was detected in the first of them for
// the others, if the request names none.
void UseDetectedLanguage(const v1::TranslateResponse& response, v1::TranslateRequest* request);

// Client::Translate that sends one text in several calls if it is larger than kBytesPerPart or if
// the server finds it too large for one call. A newline always ends a sentence, so the answer is
// the same as from a single call. A fragment of markup is one call.
absl::StatusOr<v1::TranslateResponse> TranslateInParts(Client& client,
                                                       const v1::TranslateRequest& request,
                                                       const CallOptions& options);

}  // namespace linnet::client
