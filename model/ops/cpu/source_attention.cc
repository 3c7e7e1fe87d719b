#include <algorithm>
#include <cmath>
#include <vector>

#include "model/ops/attention.h"
#include "model/ops/cpu/attend_heads.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"
#include "model/ops/same_source.h"

namespace linnet::ops {
namespace {

// Points keys[s] at the key of the row's token s; its value lies `size` elements further on.
template <class T>
void FindKeys(const SourceAttentionParams& p, int64_t row, const T** keys) {
  const int32_t* blocks = p.blocks + row * p.row_blocks;
  const int64_t length = p.lengths[row];
  for (int64_t s = 0; s < length; ++blocks) {
    const T* key = static_cast<const T*>(p.encoder_cache) + *blocks * p.block_tokens * 2 * p.size;
    const int64_t end = std::min(length, s + p.block_tokens);
    for (; s < end; ++s, key += 2 * p.size) keys[s] = key;
  }
}

// Rows [begin, begin + count), which list the same source.
struct Group {
  int64_t begin;
  int count;
};

std::vector<Group> GroupRows(const SourceAttentionParams& p) {
  std::vector<Group> groups;
  for (int64_t row = 0; row < p.rows; ++row) {
    if (!groups.empty() && groups.back().count < kAttendingRows &&
        HaveSameSource(p, groups.back().begin, row)) {
      ++groups.back().count;
    } else {
      groups.push_back({row, 1});
    }
  }
  return groups;
}

template <class T>
struct Attend {
  // Items are numbered [groups, heads].
  template <int W>
  static LINNET_INLINE void Run(const SourceAttentionParams& p, float scale,
                                const std::vector<Group>& groups, const AttendScratch<T>& scratch,
                                int64_t begin, int64_t end) {
    const int64_t head_size = p.size / p.heads;
    for (int64_t item = begin; item < end;) {
      const Group& group = groups[item / p.heads];
      const int64_t h = item % p.heads;
      const int64_t last = std::min({h + scratch.together, h + end - item, p.heads});
      if (p.lengths[group.begin] == 0) {
        T* const out = static_cast<T*>(p.y) + group.begin * p.size + h * head_size;
        for (int g = 0; g < group.count; ++g) {
          std::fill_n(out + g * p.size, (last - h) * head_size, T{});
        }
      } else {
        if (item == begin || h == 0) FindKeys<T>(p, group.begin, scratch.keys.get());
        const AttendingRows<T> rows = {
            .query = static_cast<const T*>(p.query) + group.begin * p.size,
            .query_stride = p.size,
            .y = static_cast<T*>(p.y) + group.begin * p.size,
            .y_stride = p.size,
            .count = group.count,
            .length = p.lengths[group.begin],
            .head_size = head_size,
            .to_value = p.size};
        AttendHeads<W, kAttendingRows>(rows, scale, h, last, scratch);
      }
      item += last - h;
    }
  }
};

template <class T>
void Run(const SourceAttentionParams& p) {
  const int64_t longest = *std::max_element(p.lengths, p.lengths + p.rows);
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
  const std::vector<Group> groups = GroupRows(p);
  const int64_t items = std::ssize(groups) * p.heads;
  const int64_t flops_of_row = longest * (2 * head_size + 8);  // 8: the exponential
  ParallelFor(items, flops_of_row * p.rows / std::ssize(groups), [&](int64_t begin, int64_t end) {
    const AttendScratch<T> scratch = NewAttendScratch<T>(longest, p.heads, head_size);
    RunBest<Attend<T>>(p, scale, groups, scratch, begin, end);
  });
}

template <class T>
struct AddWeights {
  // Rows [begin, end); heads [first, last), each with the same share.
  template <int W>
  static LINNET_INLINE void Run(const SourceAttentionParams& p, float scale, int64_t first,
                                int64_t last, const AttendScratch<T>& scratch, float* weights,
                                int64_t begin, int64_t end) {
    const int64_t head_size = p.size / p.heads;
    float* const scores = scratch.scores.get();
    for (int64_t row = begin; row < end; ++row) {
      const int64_t length = p.lengths[row];
      if (length == 0) continue;
      if (row == begin || !HaveSameSource(p, row - 1, row)) FindKeys<T>(p, row, scratch.keys.get());
      float* const out = weights + row * p.row_blocks * p.block_tokens;
      for (int64_t h = first; h < last; ++h) {
        LoadQuery<W>(static_cast<const T*>(p.query) + row * p.size + h * head_size, head_size,
                     scale, scratch.queries.get());
        Scores<W>(scratch.queries.get(), scratch.keys.get(), length, h * head_size, head_size,
                  scores);
        Softmax<W>(scores, length, length, scores);
        for (int64_t s = 0; s < length; ++s) out[s] += scores[s];
      }
      for (int64_t s = 0; s < length; ++s) out[s] /= static_cast<float>(last - first);
    }
  }
};

template <class T>
void RunWeights(const SourceAttentionParams& p, int64_t head, float* weights) {
  const int64_t longest = *std::max_element(p.lengths, p.lengths + p.rows);
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
  const int64_t first = std::max<int64_t>(head, 0), last = head < 0 ? p.heads : head + 1;
  const int64_t flops = longest * (last - first) * (head_size + 16);  // 16: the exponential
  ParallelFor(p.rows, flops, [&](int64_t begin, int64_t end) {
    const AttendScratch<T> scratch = NewAttendScratch<T>(longest, p.heads, head_size);
    RunBest<AddWeights<T>>(p, scale, first, last, scratch, weights, begin, end);
  });
}

}  // namespace

void SourceAttentionCpu(const SourceAttentionParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

void SourceAttentionWeightsCpu(const SourceAttentionParams& params, int64_t head, float* weights) {
  DispatchCpuType(params.type,
                  [&](auto element) { RunWeights<decltype(element)>(params, head, weights); });
}

}  // namespace linnet::ops
