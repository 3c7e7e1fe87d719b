#pragma once

#include <cstdint>

#include "model/ops/cpu/vectors.h"

// Scores of one attention head, from one position to `count` others. The CPU kernels of attention
// share this file.
namespace linnet::ops {

// to = scale * from. The elements lie in the order in which Dots reads them: that of LoadMany, then
// the remaining ones one by one.
template <int W, class T>
LINNET_INLINE void LoadQuery(const T* from, int64_t count, float scale, float* to) {
  using V = Vectors<W>;
  int64_t c = 0;
  for (; c + 2 * W <= count; c += 2 * W) {
    typename V::Floats q[2];
    V::template LoadMany<2>(from + c, q);
    V::Store(q[0] * scale, to + c);
    V::Store(q[1] * scale, to + c + W);
  }
  for (; c < count; ++c) to[c] = ToFloat(from[c]) * scale;
}

// scores[n] = query . keys[n] for N keys; the query is read once for all of them.
template <int W, int N, class T>
LINNET_INLINE void Dots(const float* query, const T* const* keys, int64_t channel, int64_t count,
                        float* scores) {
  using V = Vectors<W>;
  typename V::Floats sums[N] = {};
  int64_t c = 0;
  for (; c + 2 * W <= count; c += 2 * W) {
    const auto even = V::Load(query + c), odd = V::Load(query + c + W);
    for (int n = 0; n < N; ++n) {
      typename V::Floats key[2];
      V::template LoadMany<2>(keys[n] + channel + c, key);
      sums[n] += even * key[0];
      sums[n] += odd * key[1];
    }
  }
  for (int n = 0; n < N; ++n) {
    scores[n] = V::Sum(sums[n]);
    for (int64_t i = c; i < count; ++i) scores[n] += query[i] * ToFloat(keys[n][channel + i]);
  }
}

// scores[i] = query . keys[i][channel ..] for i < count; LoadQuery wrote `query`.
template <int W, class T>
LINNET_INLINE void Scores(const float* query, const T* const* keys, int64_t count, int64_t channel,
                          int64_t head_size, float* scores) {
  constexpr int kTogether = 4;
  int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    Dots<W, kTogether>(query, keys + i, channel, head_size, scores + i);
  }
  for (; i < count; ++i) Dots<W, 1>(query, keys + i, channel, head_size, scores + i);
}

}  // namespace linnet::ops
