#include <algorithm>
#include <cmath>

#include "model/ops/cpu/attend_heads.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/first_position.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

template <class T>
struct AttendToAll {
  // Items are numbered [batch, groups of positions].
  template <int W>
  static LINNET_INLINE void Run(const SelfAttentionParams& p, float scale, int64_t groups,
                                const AttendScratch<T>& scratch, int64_t begin, int64_t end) {
    int64_t found = -1;  // the first position of the sequence of scratch.keys
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / groups, first = item % groups * kAttendingRows;
      const int64_t start = FirstPosition(p.starts, b), sequence = b * p.time - start;
      const int64_t length = p.lengths[b];
      T* const y = static_cast<T*>(p.y) + b * p.time * p.size;
      const int64_t last = std::min(first + kAttendingRows, p.time);
      const int64_t filled = std::clamp(length - start, first, last);
      std::fill(y + filled * p.size, y + last * p.size, T{});
      if (filled == first) continue;
      const T* const from = static_cast<const T*>(p.query_key_value) + sequence * 3 * p.size;
      if (sequence != found) {
        for (int64_t j = 0; j < length; ++j) scratch.keys[j] = from + (3 * j + 1) * p.size;
      }
      found = sequence;
      const AttendingRows<T> rows = {.query = from + (start + first) * 3 * p.size,
                                     .query_stride = 3 * p.size,
                                     .y = y + first * p.size,
                                     .y_stride = p.size,
                                     .count = static_cast<int>(filled - first),
                                     .length = length,
                                     .head_size = p.size / p.heads,
                                     .to_value = p.size};
      for (int64_t h = 0; h < p.heads; h += scratch.together) {
        AttendHeads<W, kAttendingRows>(rows, scale, h, std::min(h + scratch.together, p.heads),
                                       scratch);
      }
    }
  }
};

template <class T>
void Run(const SelfAttentionParams& p) {
  const int64_t head_size = p.size / p.heads;
  const int64_t groups = (p.time + kAttendingRows - 1) / kAttendingRows;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
  const int64_t flops = kAttendingRows * p.time * (2 * p.size + 8 * p.heads);  // 8: exponential
  const int64_t longest =
      p.starts == nullptr ? p.time : *std::max_element(p.lengths, p.lengths + p.batch);
  ParallelFor(p.batch * groups, flops, [&](int64_t begin, int64_t end) {
    const AttendScratch<T> scratch = NewAttendScratch<T>(longest, p.heads, head_size);
    RunBest<AttendToAll<T>>(p, scale, groups, scratch, begin, end);
  });
}

}  // namespace

void SelfAttentionCpu(const SelfAttentionParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
