#pragma once

#include <cstdint>
#include <vector>

#include "model/runtime/search/search_options.h"
#include "server/request/text_request.h"
#include "server/text/prepared_text.h"

namespace linnet::server {

// Upper bounds, in bytes, on the memory of a call, so that its permit can hold the memory before it
// is allocated. tests/server/memory_test.cc counts the real allocations.

// The tokenizer needs some 200 bytes of memory per byte of text, so it gets at most this much text
// to find that a text is too long.
inline constexpr int64_t kEncodeBytesPerByte = 256;
inline constexpr int64_t kMaxEncodedBytes = 16 << 10;

// A TextItem and its paths.
inline constexpr int64_t kBytesPerItem = 2 * sizeof(TextItem) + 128;
// Memory of a text of that many bytes after it is split and tokenised, without its segments.
int64_t PrepareBytes(int64_t text_bytes);
// Working memory of the tokenizer for a text of that many bytes.
int64_t EncodeBytes(int64_t text_bytes);
// Memory of a segment with that many source tokens until the call ends, without its result.
int64_t SegmentBytes(int64_t source_tokens);
// Memory of a warning in a reply, including its serialised form.
inline constexpr int64_t kWarningBytes = 2048;
// Memory of one occurrence of a glossary entry.
int64_t TermBytes(const TermUse& use);
// Memory of the items themselves, and of room for more.
template <typename Item>
int64_t VectorBytes(const std::vector<Item>& items) {
  return static_cast<int64_t>(items.capacity() * sizeof(Item));
}
// Memory of the result of a segment and its part of the reply: hypotheses, attention, words and
// alignments.
int64_t ResultBytes(const TextRequest& request, const model::SearchOptions& options,
                    int64_t source_tokens, bool align);
// The same of a segment of that many bytes that is copied.
int64_t CopyBytes(const TextRequest& request, int64_t bytes);

}  // namespace linnet::server
