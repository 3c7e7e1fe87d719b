#pragma once

#include <cstdint>

namespace linnet::model {

using TokenId = int32_t;

// The tokens that a search treats in their own way. Values as fairseq's dictionaries have them.
struct SpecialTokens {
  TokenId bos = 0;  // may be eos: a model without one
  TokenId pad = 1;  // never comes out
  TokenId eos = 2;
  TokenId unk = 3;
  TokenId start = eos;  // first input of the decoder; may be any token, Marian has pad
};

}  // namespace linnet::model
