#pragma once

#include <algorithm>
#include <cstdint>

#include "model/ops/params.h"

// Access of the CPU's step kernels to a Ring (params.h).
//
// A row reads this step's entry from the operator's argument, and all others from earlier steps. No
// row of its sequence overwrites those: an overwritten entry is older than the ring is deep. So
// rows, and parts of rows, need no synchronisation.
namespace linnet::ops {

inline bool IsIdle(const Ring& ring, int64_t row) {
  return ring.backpointers[row * ring.backpointers_stride] < 0;
}

// The address of the row's entry of this step.
template <class T>
T* OwnEntry(const Ring& ring, int64_t row) {
  const int64_t turn = ring.positions[row] % ring.depth;
  const int64_t slot = ring.backpointers[row * ring.backpointers_stride];
  return static_cast<T*>(ring.data) + (turn * ring.slots + slot) * ring.size;
}

// Points entries[i] at the row's entry of (count - 1 - i) * spacing steps ago, oldest first, for
// the existing ones, i = first .. count - 1; returns first. The last one, of this step, is `own`.
template <class T>
int64_t FindEntries(const Ring& ring, int64_t row, const T* own, int64_t count, int64_t spacing,
                    const T** entries) {
  const int64_t position = ring.positions[row];
  const int32_t* slots = ring.backpointers + row * ring.backpointers_stride;
  const int64_t existing = std::min(count, position / spacing + 1);
  int64_t turn = position % ring.depth;
  entries[count - 1] = own;
  for (int64_t i = 1; i < existing; ++i) {
    turn -= spacing;
    if (turn < 0) turn += ring.depth;
    entries[count - 1 - i] =
        static_cast<const T*>(ring.data) + (turn * ring.slots + slots[i * spacing]) * ring.size;
  }
  return count - existing;
}

}  // namespace linnet::ops
