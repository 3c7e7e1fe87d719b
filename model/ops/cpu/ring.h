#pragma once

#include <algorithm>
#include <cstdint>

#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

// Access of the CPU's step kernels to a Ring (params.h).
//
// A row reads this step's entry from the operator's argument, and all others from earlier steps. No
// row of its sequence overwrites those: an overwritten entry is older than the ring is deep. So
// rows, and parts of rows, need no synchronisation. The rows of a run (convolution_step.h) do read
// what the rows before them write: ForItems gives them to one thread, in their order.
namespace linnet::ops {

inline bool IsIdle(const Ring& ring, int64_t row) {
  return ring.backpointers[row * ring.backpointers_stride] < 0;
}

// True if the row is of the same run as the row before it.
inline bool ContinuesRun(const Ring& ring, int64_t row) {
  const int32_t* own = ring.backpointers + row * ring.backpointers_stride;
  return row > 0 && own[0] >= 0 && own[0] == own[-ring.backpointers_stride];
}

inline bool HasRuns(const Ring& ring, int64_t rows) {
  for (int64_t row = 1; row < rows; ++row) {
    if (ContinuesRun(ring, row)) return true;
  }
  return false;
}

// Calls take(row, part) for the items begin .. end - 1 of rows * parts, in the order of the rows,
// but a part of a run row by row before the next part. An item inside a part of a run belongs to
// the range that has the first item of that part.
template <class Take>
LINNET_INLINE void ForItems(const Ring& ring, int64_t rows, int64_t parts, int64_t begin,
                            int64_t end, const Take& take) {
  for (int64_t item = begin; item < end;) {
    int64_t first = item / parts, last = first + 1;
    while (ContinuesRun(ring, first)) --first;
    while (last < rows && ContinuesRun(ring, last)) ++last;
    const int64_t length = last - first, base = first * parts;
    int64_t part = (item - base + length - 1) / length;
    for (; part < parts && base + part * length < end; ++part) {
      for (int64_t row = first; row < last; ++row) take(row, part);
    }
    item = part == parts ? last * parts : end;
  }
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
