#pragma once

#include <span>
#include <string>

#include "linnet/v1/bundle.pb.h"
#include "model/runtime/text/tokenizer.h"

namespace linnet::server {

// The text that the decoded text of any continuation of `tokens` (without eos), with `copies` in
// the place of placeholders, starts with, given how the target's words were made. Whole characters.
// With more tokens it is more of the same text, or now and then less of it.
//
// Subwords are decoded from left to right, so that only these may still change: bytes that do not
// form a character yet (the tokenizer shows them as U+FFFD) and white space at the end, which some
// tokenizers drop from a text that is complete. Moses's detokenizer looks at the words on both
// sides of a mark, so that with it the last word, all that stands behind the last blank, waits as
// well, and the one before it where the last may become a hyphen ("@-@") that joins them. A text
// without blanks waits for its end.
std::string StableText(const model::Tokenizer& tokenizer, linnet::v1::WordTokenizer words,
                       std::span<const model::TokenId> tokens,
                       std::span<const std::string> copies = {});

}  // namespace linnet::server
