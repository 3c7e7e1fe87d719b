#include <algorithm>
#include <memory>

#include "model/ops/parallel.h"
#include "model/ops/params.h"
#include "model/ops/vectors.h"

namespace linnet::ops {
namespace {

// The order of the work. The positions of one head follow each other, so that its window, K rows of
// R channels, stays in the first-level cache: 8 KB at K 31 and R 64, where K rows of all channels
// would be 64 KB. But only for a block of positions: then the other heads find the block's rows in
// the second-level cache, where on a long text each head would fetch them from memory anew.
struct Blocks {
  explicit Blocks(int64_t time)
      : count((time + kMost - 1) / kMost), positions(count > 0 ? (time + count - 1) / count : 0) {}

  static constexpr int64_t kMost = 128;  // 256 KB at 512 channels
  int64_t count;
  int64_t positions;  // of each block; the last one may reach beyond the end
};

template <class T>
struct Convolve {
  // Items are numbered [batch, blocks, heads, positions]. `filters` holds light_conv's taps, null
  // for dynamic_conv.
  template <int W>
  static LINNET_INLINE void Run(const ConvolutionParams& p, const Blocks& blocks, int64_t stride,
                                const float* filters, float* own_taps, int64_t begin, int64_t end) {
    const int64_t head_channels = p.channels / p.heads;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t h = item / blocks.positions % p.heads;
      const int64_t block = item / blocks.positions / p.heads;
      const int64_t b = block / blocks.count;
      const int64_t t = block % blocks.count * blocks.positions + item % blocks.positions;
      if (t >= p.time) continue;
      const int64_t position = b * p.time + t;
      T* out = static_cast<T*>(p.y) + position * p.channels + h * head_channels;
      if (t >= p.lengths[b]) {
        std::fill_n(out, head_channels, T{});
        continue;
      }
      const float* taps = filters ? filters + h * stride : own_taps;
      if (!filters) {
        Softmax<W>(static_cast<const T*>(p.weight) + (position * p.heads + h) * p.width, p.width,
                   own_taps);
      }
      const int64_t first = std::max<int64_t>(0, p.padding_left - t);
      const int64_t last = std::min(p.width, p.lengths[b] - t + p.padding_left);
      const T* x = static_cast<const T*>(p.x) + h * head_channels +
                   (position + first - p.padding_left) * p.channels;
      const auto rows = [&](int64_t j) __attribute__((always_inline)) {
        return x + j * p.channels;
      };
      WeightedSum<W>(RowWeights{taps + first}, last - first, rows, head_channels, out);
    }
  }
};

template <class T>
void Run(const ConvolutionParams& p) {
  const int64_t stride = PaddedWidth(p.width);
  std::unique_ptr<float[]> filters;
  if (!p.dynamic) {
    filters.reset(new float[p.heads * stride]);
    RunBest<SoftmaxRows<T>>(static_cast<const T*>(p.weight), p.heads, p.width, stride,
                            filters.get());
  }
  const int64_t flops = p.width * (p.channels / p.heads + 8);  // 8: a tap's exponential
  const Blocks blocks(p.time);
  const int64_t items = p.batch * blocks.count * p.heads * blocks.positions;
  ParallelFor(items, flops, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float[]> own_taps(new float[stride]);
    RunBest<Convolve<T>>(p, blocks, stride, static_cast<const float*>(filters.get()),
                         own_taps.get(), begin, end);
  });
}

}  // namespace

void ConvolutionCpu(const ConvolutionParams& params) {
  if (params.type == FloatType::kFloat32) {
    Run<float>(params);
  } else {  // the .cc admits no third type on the CPU
    Run<BFloat16>(params);
  }
}

}  // namespace linnet::ops
