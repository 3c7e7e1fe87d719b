#pragma once

#include <cstdint>

#include "model/ops/both.h"
#include "model/ops/params.h"

namespace linnet::ops {

// True if two rows attend to the same tokens, whose keys and values then need to be read only once.
LINNET_BOTH bool HaveSameSource(const SourceAttentionParams& p, int64_t a, int64_t b) {
  if (p.lengths[a] != p.lengths[b]) return false;
  const int32_t* const of_a = p.blocks + a * p.row_blocks;
  const int32_t* const of_b = p.blocks + b * p.row_blocks;
  for (int64_t block = 0; block * p.block_tokens < p.lengths[a]; ++block) {
    if (of_a[block] != of_b[block]) return false;
  }
  return true;
}

}  // namespace linnet::ops
