#include <cmath>
#include <cstdint>
#include <vector>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

template <class T>
void AddNormRow(const AddNormParams& p, int64_t row, float* sums) {
  const T* x = static_cast<const T*>(p.x) + row * p.channels;
  const T* residual = static_cast<const T*>(p.residual) + row * p.channels;
  const T* weight = static_cast<const T*>(p.weight);
  const T* bias = static_cast<const T*>(p.bias);
  T* y = static_cast<T*>(p.y) + row * p.channels;
  float total = 0, squares = 0;
  for (int64_t c = 0; c < p.channels; ++c) {
    sums[c] = ToFloat(x[c]) + ToFloat(residual[c]);
    total += sums[c];
  }
  if (p.sum != nullptr) {
    T* sum = static_cast<T*>(p.sum) + row * p.channels;
    for (int64_t c = 0; c < p.channels; ++c) FromFloat(sums[c], sum + c);
  }
  const float mean = total / p.channels;
  for (int64_t c = 0; c < p.channels; ++c) squares += (sums[c] - mean) * (sums[c] - mean);
  const float scale = 1.0f / std::sqrt(squares / p.channels + p.epsilon);
  for (int64_t c = 0; c < p.channels; ++c) {
    FromFloat((sums[c] - mean) * scale * ToFloat(weight[c]) + ToFloat(bias[c]), y + c);
  }
}

}  // namespace

void AddNormCpu(const AddNormParams& p) {
  ParallelFor(p.rows, 8 * p.channels, [&](int64_t begin, int64_t end) {
    std::vector<float> sums(p.channels);
    for (int64_t row = begin; row < end; ++row) {
      DispatchCpuType(p.type,
                      [&](auto element) { AddNormRow<decltype(element)>(p, row, sums.data()); });
    }
  });
}

}  // namespace linnet::ops
