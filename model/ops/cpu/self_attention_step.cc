#include <algorithm>
#include <cmath>
#include <memory>

#include "model/ops/attention.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/ring.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Scratch memory of a thread, for one row at a time.
template <class T>
struct Scratch {
  std::unique_ptr<float[]> query;      // [head size]
  std::unique_ptr<float[]> scores;     // [neighbour_heads * depth], padded
  std::unique_ptr<const T*[]> keys;    // [depth], of all heads
  std::unique_ptr<const T*[]> values;  // [neighbour_heads * depth], of one head each
};

template <class T>
struct Attend {
  // Items are numbered [rows, parts], each with the same number of heads.
  template <int W>
  static LINNET_INLINE void Run(const SelfAttentionStepParams& p, int64_t parts, float scale,
                                const Scratch<T>& scratch, int64_t begin, int64_t end) {
    const int64_t head_size = p.size / p.heads;
    const int64_t depth = p.cache.depth;
    int64_t first = 0, found = -1;  // the row of scratch.keys
    const auto take_head = [&](int64_t row, int64_t h) __attribute__((always_inline)) {
      const int64_t channel = h * head_size;
      T* out = static_cast<T*>(p.y) + row * p.size + channel;
      if (IsIdle(p.cache, row)) {
        std::fill_n(out, head_size, T{});
        return;
      }
      const T* key = static_cast<const T*>(p.key) + row * p.size;
      const T* value = static_cast<const T*>(p.value) + row * p.size;
      if (row != found) {
        first = FindEntries<T>(p.cache, row, key, depth, /*spacing=*/1, scratch.keys.get());
      }
      found = row;
      LoadQuery<W>(static_cast<const T*>(p.query) + row * p.size + channel, head_size, scale,
                   scratch.query.get());
      const T* const* keys = scratch.keys.get() + first;
      const int64_t count = depth - first;
      const int64_t neighbours = p.neighbour_heads / 2;
      const int64_t last_head = std::min(h + neighbours, p.heads - 1);
      int64_t total = 0;
      for (int64_t g = std::max<int64_t>(h - neighbours, 0); g <= last_head; ++g) {
        Scores<W>(scratch.query.get(), keys, count, g * head_size, head_size,
                  scratch.scores.get() + total);
        const T** values = scratch.values.get() + total;
        for (int64_t i = 0; i < count - 1; ++i) values[i] = keys[i] + p.size + g * head_size;
        values[count - 1] = value + g * head_size;
        total += count;
      }
      Softmax<W>(scratch.scores.get(), total, total, scratch.scores.get());
      const auto rows = [&](int64_t i) __attribute__((always_inline)) { return scratch.values[i]; };
      WeightedSum<W>(RowWeights{scratch.scores.get()}, total, rows, head_size, out);

      T* entry = OwnEntry<T>(p.cache, row);
      std::copy_n(key + channel, head_size, entry + channel);
      std::copy_n(value + channel, head_size, entry + p.size + channel);
    };
    const int64_t heads = p.heads / parts;
    const auto take = [&](int64_t row, int64_t part) __attribute__((always_inline)) {
      for (int64_t h = part * heads; h < (part + 1) * heads; ++h) take_head(row, h);
    };
    ForItems(p.cache, p.rows, parts, begin, end, take);
  }
};

template <class T>
void Run(const SelfAttentionStepParams& p) {
  const int64_t head_size = p.size / p.heads;
  const int64_t heads_seen = std::min(p.neighbour_heads, p.heads);
  const int64_t depth = p.cache.depth;
  const int64_t furthest = *std::max_element(p.cache.positions, p.cache.positions + p.rows);
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
  // In a run a head reads what its neighbours wrote for the row before: one thread takes them all.
  const int64_t parts = heads_seen > 1 && HasRuns(p.cache, p.rows) ? 1 : p.heads;
  // 8: the exponential
  const int64_t flops = std::min(depth, furthest + 1) * heads_seen * (2 * head_size + 8);
  ParallelFor(p.rows * parts, flops * p.heads / parts, [&](int64_t begin, int64_t end) {
    const Scratch<T> scratch = {
        .query = std::unique_ptr<float[]>(new float[head_size]),
        .scores = std::unique_ptr<float[]>(new float[PaddedWidth(heads_seen * depth)]),
        .keys = std::unique_ptr<const T*[]>(new const T*[depth]),
        .values = std::unique_ptr<const T*[]>(new const T*[heads_seen * depth])};
    RunBest<Attend<T>>(p, parts, scale, scratch, begin, end);
  });
}

}  // namespace

void SelfAttentionStepCpu(const SelfAttentionStepParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
