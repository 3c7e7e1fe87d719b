#pragma once

#include <span>
#include <string>

#include "linnet/v1/bundle.pb.h"
#include "model/runtime/tokenizer/tokenizer.h"

namespace linnet::server {

// Returns the text that any continuation of `tokens` (without eos) will start with, in `capitals`,
// if any (Tokenizer::Decode), given the tokenizer of the target's words. It holds whole characters.
// With more tokens it is usually longer, and sometimes shorter, but never different.
//
// Subwords are decoded from left to right, so only two things may still change: bytes that do not
// form a character yet (the tokenizer shows them as U+FFFD), and white space at the end, which some
// tokenizers drop from a complete text. Moses's detokenizer looks at the words on both sides of a
// mark, so with it the last word (after the last space) is held back as well, and the one before it
// if the last may become a hyphen ("@-@") that joins them. A text without spaces is held back until
// its end. The capital of a letter may depend on the next one (Greek), so in capitals
// the last character is held back.
std::string StableText(const model::Tokenizer& tokenizer, linnet::v1::WordTokenizer words,
                       std::span<const model::TokenId> tokens, absl::string_view capitals = {});

}  // namespace linnet::server
