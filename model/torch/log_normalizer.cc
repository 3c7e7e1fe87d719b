#include "model/torch/log_normalizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/ops/vectors.h"

namespace linnet::model {
namespace {

struct Kernel {
  template <int W>
  static LINNET_INLINE void Run(const float* logits, int64_t count, float scale, float* out) {
    using V = ops::Vectors<W>;
    using Floats = typename V::Floats;
    float rest[W];  // the last, partial vector, filled up with what adds nothing
    const int64_t whole = count / W * W;
    std::fill_n(rest, W, -std::numeric_limits<float>::infinity());
    std::copy(logits + whole, logits + count, rest);
    Floats most = V::Load(rest);
    for (int64_t i = 0; i < whole; i += W) most = V::Max(most, V::Load(logits + i));
    const float highest = V::Max(most);
    Floats sums = V::Exp((V::Load(rest) - highest) * scale);
    for (int64_t i = 0; i < whole; i += W) sums += V::Exp((V::Load(logits + i) - highest) * scale);
    *out = highest * scale + std::log(V::Sum(sums));
  }
};

}  // namespace

float LogNormalizer(const float* logits, int64_t count, float temperature) {
  float result = 0;
  ops::RunBest<Kernel>(logits, count, 1.0f / temperature, &result);
  return result;
}

}  // namespace linnet::model
