#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "model/ops/cpu/vectors.h"

// log(sum_i exp(scale * logits[i])) of a row, in pieces of kPieceTokens whose partial sums are
// joined in order. The result is the same, bit for bit, for a whole row in memory and for pieces
// computed one by one on any threads.
namespace linnet::ops {

constexpr int64_t kPieceTokens = 512;

struct PartialSum {
  float highest;  // highest logit of the piece, at least the lowest finite number
  float sum;      // of exp(scale * (logit - highest)); NaN if a logit is NaN or +infinity
};

// 1 <= count <= kPieceTokens.
template <int W>
LINNET_INLINE PartialSum SumPiece(const float* logits, int64_t count, float scale) {
  using V = Vectors<W>;
  float rest[W];  // the last, partial vector, padded with -infinity, which adds 0
  const int64_t whole = count / W * W;
  std::fill_n(rest, W, -std::numeric_limits<float>::infinity());
  std::copy(logits + whole, logits + count, rest);
  typename V::Floats max = V::Load(rest);
  for (int64_t i = 0; i < whole; i += W) max = V::Max(max, V::Load(logits + i));
  // A piece of -infinity only has the sum 0, not NaN.
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const float found = V::Max(max);
  const float highest = found >= kLowest ? found : kLowest;
  typename V::Floats sums = V::Exp((V::Load(rest) - highest) * scale);
  for (int64_t i = 0; i < whole; i += W) sums += V::Exp((V::Load(logits + i) - highest) * scale);
  return {highest, V::Sum(sums)};
}

// Returns the log-sum: NaN if a logit is NaN or +infinity, or if all are -infinity.
template <int W>
LINNET_INLINE float JoinPieces(const PartialSum* pieces, int64_t count, float scale) {
  using V = Vectors<W>;
  float highest = std::numeric_limits<float>::lowest();
  for (int64_t i = 0; i < count; ++i) highest = std::max(highest, pieces[i].highest);
  float sum = 0;
  for (int64_t i = 0; i < count; i += W) {
    float distances[W] = {}, sums[W] = {};
    for (int64_t j = 0; j < std::min<int64_t>(W, count - i); ++j) {
      distances[j] = (pieces[i + j].highest - highest) * scale;
      sums[j] = pieces[i + j].sum;
    }
    sum += V::Sum(V::Exp(V::Load(distances)) * V::Load(sums));
  }
  if (!(sum > 0)) return std::numeric_limits<float>::quiet_NaN();
  return highest * scale + std::log(sum);
}

}  // namespace linnet::ops
