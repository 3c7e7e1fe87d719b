#include <algorithm>
#include <memory>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/ring.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kCacheBytes = 2 << 20;  // L2 caches have half to twice this size

template <class T>
struct ConvolveStep {
  // Items are numbered [rows, heads]. `filters` holds light_conv's taps, null for dynamic_conv.
  template <int W>
  static LINNET_INLINE void Run(const ConvolutionStepParams& p, int64_t stride,
                                const float* filters, float* own_taps, const T** inputs,
                                int64_t begin, int64_t end) {
    const int64_t head_channels = p.channels / p.heads;
    int64_t first = 0;
    // Prefetch the channels of the next head, which follow in each input: `width` short pieces at
    // once are more streams than the processor's own prefetcher tracks. At 160 rows, width 31 and
    // 512 channels a bfloat16 step takes 510 us with it and 865 us without (one thread, 5.1 MB
    // read). Data in the L2 cache is read more slowly with it.
    const int64_t state_bytes = p.rows * p.width * p.channels * sizeof(T);
    const int64_t ahead = state_bytes > kCacheBytes ? head_channels * sizeof(T) : 0;
    int64_t found = -1;  // the row of `inputs`
    const auto take = [&](int64_t row, int64_t h) __attribute__((always_inline)) {
      const int64_t channel = h * head_channels;
      T* out = static_cast<T*>(p.y) + row * p.channels + channel;
      if (IsIdle(p.state, row)) {
        std::fill_n(out, head_channels, T{});
        return;
      }
      const T* x = static_cast<const T*>(p.x) + row * p.channels;
      if (row != found) first = FindEntries<T>(p.state, row, x, p.width, /*spacing=*/1, inputs);
      found = row;
      const float* taps = filters ? filters + h * stride : own_taps;
      if (!filters) {
        const int64_t item = row * p.heads + h;
        Softmax<W>(static_cast<const T*>(p.weight) + item * p.width, p.width,
                   (p.rows * p.heads - item) * p.width, own_taps);
      }
      const auto rows = [&](int64_t j) __attribute__((always_inline)) {
        const T* input = inputs[first + j] + channel;
        for (int64_t b = 0; b < ahead; b += kCacheLine) {
          __builtin_prefetch(reinterpret_cast<const char*>(input + head_channels) + b);
        }
        return input;
      };
      WeightedSum<W>(RowWeights{taps + first}, p.width - first, rows, head_channels, out);
      std::copy_n(x + channel, head_channels, OwnEntry<T>(p.state, row) + channel);
    };
    ForItems(p.state, p.rows, p.heads, begin, end, take);
  }
};

template <class T>
void Run(const ConvolutionStepParams& p) {
  const int64_t stride = PaddedWidth(p.width);
  const std::unique_ptr<float[]> filters = LightFilters<T>(p, stride);
  const int64_t flops = p.width * (p.channels / p.heads + 8);  // 8: a tap's exponential
  ParallelFor(p.rows * p.heads, flops, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float[]> own_taps(new float[stride]);
    const std::unique_ptr<const T*[]> inputs(new const T*[p.width]);
    RunBest<ConvolveStep<T>>(p, stride, static_cast<const float*>(filters.get()), own_taps.get(),
                             inputs.get(), begin, end);
  });
}

}  // namespace

void ConvolutionStepCpu(const ConvolutionStepParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
