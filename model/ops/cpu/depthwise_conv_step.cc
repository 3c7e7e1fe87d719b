#include <algorithm>
#include <memory>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/ring.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Channels of one item: several threads share a row where there are few rows.
constexpr int64_t kBlock = 64;

template <class T>
struct ConvolveStep {
  // Items are numbered [rows, blocks of channels].
  template <int W>
  static LINNET_INLINE void Run(const DepthwiseConvStepParams& p, int64_t blocks, const T** inputs,
                                int64_t begin, int64_t end) {
    int64_t first = 0, found = -1;  // the row of `inputs`
    const auto take = [&](int64_t row, int64_t block) __attribute__((always_inline)) {
      const int64_t channel = block * kBlock;
      const int64_t channels = std::min(kBlock, p.channels - channel);
      T* out = static_cast<T*>(p.y) + row * p.channels + channel;
      if (IsIdle(p.state, row)) {
        std::fill_n(out, channels, T{});
        return;
      }
      const T* x = static_cast<const T*>(p.x) + row * p.channels;
      if (row != found) first = FindEntries<T>(p.state, row, x, p.width, p.dilation, inputs);
      found = row;
      const auto rows = [&](int64_t j) __attribute__((always_inline)) {
        return inputs[first + j] + channel;
      };
      const ChannelWeights<T> taps = {static_cast<const T*>(p.taps) + first * p.channels + channel,
                                      p.channels};
      WeightedSum<W>(taps, p.width - first, rows, channels, out);
      std::copy_n(x + channel, channels, OwnEntry<T>(p.state, row) + channel);
    };
    ForItems(p.state, p.rows, blocks, begin, end, take);
  }
};

template <class T>
void Run(const DepthwiseConvStepParams& p) {
  const int64_t blocks = (p.channels + kBlock - 1) / kBlock;
  const int64_t flops = p.width * std::min(kBlock, p.channels);
  ParallelFor(p.rows * blocks, flops, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<const T*[]> inputs(new const T*[p.width]);
    RunBest<ConvolveStep<T>>(p, blocks, inputs.get(), begin, end);
  });
}

}  // namespace

void DepthwiseConvStepCpu(const DepthwiseConvStepParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
