#include <cmath>
#include <cstdint>
#include <vector>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

template <class T>
void RunGatedConvStep(const GatedConvStepParams& p) {
  const int64_t wide = p.gated ? 2 * p.channels : p.channels;
  const int64_t scores = p.heads * p.width;
  const T* z = static_cast<const T*>(p.z);
  const T* weight = static_cast<const T*>(p.taps_weight);
  std::vector<T> inputs(p.rows * p.channels), taps(p.rows * scores);
  ParallelFor(p.rows, scores * p.channels, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* x = inputs.data() + row * p.channels;
      for (int64_t c = 0; c < p.channels; ++c) {
        float value = ToFloat(z[row * wide + c]);
        if (p.gated) value /= 1.0f + std::exp(-ToFloat(z[row * wide + p.channels + c]));
        FromFloat(value, x + c);
      }
      for (int64_t k = 0; k < scores; ++k) {
        float sum = 0;
        for (int64_t c = 0; c < p.channels; ++c) {
          sum += ToFloat(weight[k * p.channels + c]) * ToFloat(x[c]);
        }
        FromFloat(sum, taps.data() + row * scores + k);
      }
    }
  });
  ConvolutionStepCpu({.type = p.type,
                      .dynamic = true,
                      .x = inputs.data(),
                      .weight = taps.data(),
                      .state = p.state,
                      .y = p.y,
                      .rows = p.rows,
                      .channels = p.channels,
                      .heads = p.heads,
                      .width = p.width});
}

}  // namespace

// Plain loops: on the CPU the decoder uses packed weights and dynamic_conv_step instead.
void GatedConvStepCpu(const GatedConvStepParams& p) {
  DispatchCpuType(p.type, [&](auto element) { RunGatedConvStep<decltype(element)>(p); });
}

}  // namespace linnet::ops
