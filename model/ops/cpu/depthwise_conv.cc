#include <algorithm>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/first_position.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Positions of a block of channels follow each other, so that its taps and inputs stay in the L1
// cache: 8 KB each at K 31, where all channels of a base model would be 64 KB.
constexpr int64_t kBlock = 64;

template <class T>
struct Convolve {
  // Items are numbered [batch, blocks of channels, time].
  template <int W>
  static LINNET_INLINE void Run(const DepthwiseConvParams& p, int64_t blocks, int64_t begin,
                                int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item % p.time;
      const int64_t channel = item / p.time % blocks * kBlock;
      const int64_t b = item / p.time / blocks;
      const int64_t channels = std::min(kBlock, p.channels - channel);
      const int64_t first_position = FirstPosition(p.starts, b);
      const int64_t sentence = (b * p.time - first_position) * p.channels + channel;
      T* out = static_cast<T*>(p.y) + (b * p.time + t) * p.channels + channel;
      if (first_position + t >= p.lengths[b]) {
        std::fill_n(out, channels, T{});
        continue;
      }
      // Tap k sees position start + k * dilation; taps first .. last - 1 lie in the sequence.
      const int64_t start = first_position + t - p.padding_left;
      const int64_t first = start < 0 ? (-start + p.dilation - 1) / p.dilation : 0;
      const int64_t last =
          start < p.lengths[b]
              ? std::min(p.width, (p.lengths[b] - start + p.dilation - 1) / p.dilation)
              : 0;
      const T* x = static_cast<const T*>(p.x) + sentence;
      const auto rows = [&](int64_t j) __attribute__((always_inline)) {
        return x + (start + (first + j) * p.dilation) * p.channels;
      };
      const ChannelWeights<T> taps = {static_cast<const T*>(p.taps) + first * p.channels + channel,
                                      p.channels};
      WeightedSum<W>(taps, last - first, rows, channels, out);
    }
  }
};

template <class T>
void Run(const DepthwiseConvParams& p) {
  const int64_t blocks = (p.channels + kBlock - 1) / kBlock;
  const int64_t flops = p.width * std::min(kBlock, p.channels);
  ParallelFor(p.batch * blocks * p.time, flops,
              [&](int64_t begin, int64_t end) { RunBest<Convolve<T>>(p, blocks, begin, end); });
}

}  // namespace

void DepthwiseConvCpu(const DepthwiseConvParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
