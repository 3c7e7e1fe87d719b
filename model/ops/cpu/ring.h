#pragma once

#include <algorithm>
#include <cstdint>

#include "model/ops/params.h"

// How the CPU kernels of the steps read and write a Ring (params.h).
//
// All other entries that a row reads are of earlier steps, and a row of the same sequence never
// overwrites one of them: what it overwrites has fallen out of the ring. So rows, and parts of
// rows, need not wait for each other, as long as the entry of this very step is read from the
// operator's argument instead.
namespace linnet::ops {

inline bool IsIdle(const Ring& ring, int64_t row) {
  return ring.backpointers[row * ring.backpointers_stride] < 0;
}

// Where the row's entry of this very step is to lie.
template <class T>
T* OwnEntry(const Ring& ring, int64_t row) {
  const int64_t turn = ring.positions[row] % ring.depth;
  const int64_t slot = ring.backpointers[row * ring.backpointers_stride];
  return static_cast<T*>(ring.data) + (turn * ring.slots + slot) * ring.size;
}

// Points entries[i] at the row's entry of (count - 1 - i) * spacing steps ago, oldest first, for
// those that exist, i = first .. count - 1; returns first. The last one, of this very step, is
// `own`.
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
