#pragma once

#include <cstdint>

#include "model/ops/both.h"

// Operators over whole sequences take a batch [B, T, ...] with lengths [B], and perhaps `starts`
// [B]. Without `starts` each row of the batch is a sequence, padded to T. With it a row is a block
// of T positions, and a sequence lies in as many neighbouring rows as it needs:
//
//   starts   [B]  int32, the position of row b's first one in its sequence; the row before it then
//                 holds the T positions before that one, so starts[b] <= b * T
//   lengths  [B]  int32, of the sequence that row b is a part of; it ends within the batch
//
// So a batch of sequences is packed without a dimension for their number or their length, which are
// values on the device: what a recorded graph needs. A row whose start is not below its length is
// padding.
namespace linnet::ops {

LINNET_BOTH int64_t FirstPosition(const int32_t* starts, int64_t row) {
  return starts == nullptr ? 0 : starts[row];
}

}  // namespace linnet::ops
