#pragma once

#include <cstdint>

#include "model/runtime/search/search_options.h"
#include "server/text/text_request.h"
#include "server/text/text_work.h"

namespace linnet::server {

// Upper bounds, in bytes, on the memory that a call takes, so that it can be held by its permit
// before it is allocated. tests/server/memory_test.cc counts what is really allocated.

// The tokenizer takes some 200 bytes of memory a byte of text, so it is never given more than this
// to learn that a text is too long.
inline constexpr int64_t kMaxEncodedBytes = 16 << 10;

// What the detector of languages works with while it reads a text. It is that of a thread of the
// text pool, and so of few calls at a time: no permit holds it.
inline constexpr int64_t kDetectorBytes = 256 << 10;

// A text of so many bytes once it is split and tokenised, its segments apart.
int64_t PrepareBytes(int64_t text_bytes);
// What the tokenizer works with while it reads a text of so many bytes.
int64_t EncodeBytes(int64_t text_bytes);
// A segment with so many source tokens, from the cut until the call ends, without its result.
int64_t SegmentBytes(int64_t source_tokens);
// A warning in a reply, as it stands and as it is sent.
inline constexpr int64_t kWarningBytes = 2048;
// A use of a glossary entry.
int64_t TermBytes(const TermUse& use);
// The result of a segment and its part of the reply: hypotheses, attention, words and links.
int64_t ResultBytes(const TextRequest& request, const model::SearchOptions& options,
                    int64_t source_tokens);

}  // namespace linnet::server
