#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model/ops/attention.h"
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

// The rows of a source lie side by side, so its keys and values are read once for up to this many
// rows. The sums of more would not fit into the registers.
constexpr int kMaxRows = 5;

// Rows [begin, begin + count), which list the same source.
struct Group {
  int64_t begin;
  int count;
};

std::vector<Group> GroupRows(const SourceAttentionParams& p) {
  std::vector<Group> groups;
  for (int64_t row = 0; row < p.rows; ++row) {
    if (!groups.empty() && groups.back().count < kMaxRows &&
        HaveSameSource(p, groups.back().begin, row)) {
      ++groups.back().count;
    } else {
      groups.push_back({row, 1});
    }
  }
  return groups;
}

// Memory of a thread, for one group and `together` of its heads at a time.
template <class T>
struct Scratch {
  int64_t together;
  int64_t stride;
  std::unique_ptr<float[]> queries;  // [together, kMaxRows, head size]
  std::unique_ptr<float[]> scores;   // [together, kMaxRows, stride]
  std::unique_ptr<const T*[]> keys;  // [the longest source]
};

template <class T>
Scratch<T> NewScratch(int64_t longest, int64_t heads, int64_t head_size) {
  constexpr int64_t kFloats = 1 << 14;  // scores that stay in the cache nearby
  const int64_t stride = PaddedWidth(longest);
  const int64_t together =
      std::clamp<int64_t>(kFloats / (kMaxRows * std::max<int64_t>(stride, 1)), 1, heads);
  return {.together = together,
          .stride = stride,
          .queries = std::unique_ptr<float[]>(new float[together * kMaxRows * head_size]),
          .scores = std::unique_ptr<float[]>(new float[together * kMaxRows * stride]),
          .keys = std::unique_ptr<const T*[]>(new const T*[longest])};
}

template <class T>
LINNET_INLINE void Prefetch(const T* from, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, /*rw=*/0, /*locality=*/2);
}

// Heads [begin, end) of a group of G rows or, if it has fewer, of the instance for that many.
//
// A full batch has more keys and values than a cache holds, and each lies in a page of memory of
// its own. So they are read token by token with all heads, and those needed next are fetched
// meanwhile: head by head the processor would wait for memory most of the time.
template <int W, int G, class T>
LINNET_INLINE void AttendHeads(const SourceAttentionParams& p, float scale, const Group& group,
                               int64_t begin, int64_t end, const Scratch<T>& scratch) {
  if constexpr (G > 1) {
    if (group.count < G) {
      return AttendHeads<W, G - 1>(p, scale, group, begin, end, scratch);
    }
  }
  const int64_t head_size = p.size / p.heads;
  const int64_t length = p.lengths[group.begin];
  const int64_t channel = begin * head_size, channels = (end - begin) * head_size;
  const T* const query = static_cast<const T*>(p.query) + group.begin * p.size;
  T* const out = static_cast<T*>(p.y) + group.begin * p.size;
  const auto queries = [&](int64_t h) __attribute__((always_inline)) {
    return scratch.queries.get() + (h - begin) * G * head_size;
  };
  const auto scores = [&](int64_t h) __attribute__((always_inline)) {
    return scratch.scores.get() + (h - begin) * G * scratch.stride;
  };
  for (int64_t h = begin; h < end; ++h) {
    for (int g = 0; g < G; ++g) {
      LoadQuery<W>(query + g * p.size + h * head_size, head_size, scale,
                   queries(h) + g * head_size);
    }
  }
  const T* const* const keys = scratch.keys.get();
  for (int64_t s = 0; s < length; ++s) {
    if (s + 1 < length) Prefetch(keys[s + 1] + channel, channels);
    Prefetch(keys[s] + p.size + channel, channels);  // the value
    for (int64_t h = begin; h < end; ++h) {
      Dots<W, 1, G>(queries(h), keys + s, h * head_size, head_size, scores(h) + s, scratch.stride);
    }
  }
  for (int64_t h = begin; h < end; ++h) {
    for (int g = 0; g < G; ++g) {
      float* const of_row = scores(h) + g * scratch.stride;
      Softmax<W>(of_row, length, length, of_row);
    }
    const auto values = [&](int64_t s) __attribute__((always_inline)) {
      return keys[s] + p.size + h * head_size;
    };
    WeightedSums<W, G>(scores(h), scratch.stride, length, values, head_size, out + h * head_size,
                       p.size);
  }
}

template <class T>
struct Attend {
  // Items are numbered [groups, heads].
  template <int W>
  static LINNET_INLINE void Run(const SourceAttentionParams& p, float scale,
                                const std::vector<Group>& groups, const Scratch<T>& scratch,
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
        AttendHeads<W, kMaxRows>(p, scale, group, h, last, scratch);
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
    const Scratch<T> scratch = NewScratch<T>(longest, p.heads, head_size);
    RunBest<Attend<T>>(p, scale, groups, scratch, begin, end);
  });
}

template <class T>
struct AddWeights {
  // Rows [begin, end); heads [first, last), each with the same share.
  template <int W>
  static LINNET_INLINE void Run(const SourceAttentionParams& p, float scale, int64_t first,
                                int64_t last, const Scratch<T>& scratch, float* weights,
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
    const Scratch<T> scratch = NewScratch<T>(longest, p.heads, head_size);
    RunBest<AddWeights<T>>(p, scale, first, last, scratch, weights, begin, end);
  });
}

}  // namespace

void SourceAttentionCpu(const SourceAttentionParams& params) {
  if (params.type == FloatType::kFloat32) {
    Run<float>(params);
  } else {  // the operator's checks allow no third type on the CPU
    Run<BFloat16>(params);
  }
}

void SourceAttentionWeightsCpu(const SourceAttentionParams& params, int64_t head, float* weights) {
  if (params.type == FloatType::kFloat32) {
    RunWeights<float>(params, head, weights);
  } else {
    RunWeights<BFloat16>(params, head, weights);
  }
}

}  // namespace linnet::ops
