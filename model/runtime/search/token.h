#pragma once

#include <cstdint>

namespace linnet::model {

using TokenId = int32_t;

inline constexpr TokenId kNoToken = -1;

// Tokens with a special meaning for a search. The defaults are those of fairseq's dictionaries.
struct SpecialTokens {
  TokenId bos = 0;  // equals eos in a model without bos
  TokenId pad = 1;  // never in a target
  TokenId eos = 2;
  TokenId unk = 3;
  TokenId start = eos;  // first input of the decoder; may be any token, Marian has pad
};

}  // namespace linnet::model
