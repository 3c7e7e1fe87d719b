#include <algorithm>
#include <memory>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/first_position.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Neighbouring positions that are summed together: each loaded input is used for all of them, so
// that multiplication, not loading, is the limit. (One position at a time reached 40 % of this
// speed.)
constexpr int kTogether = 4;

// The order of the loops. Positions of one head follow each other, so that its inputs, K rows of R
// channels, stay in the L1 cache: 8 KB at K 31 and R 64, where K rows of all channels would be 64
// KB. Positions are processed in blocks, so that the other heads find the rows of the block in the
// L2 cache; in a long text each head would otherwise read them from memory again.
struct Blocks {
  explicit Blocks(int64_t time)
      : count((time + kMax - 1) / kMax),
        groups(count > 0 ? (time + count * kTogether - 1) / (count * kTogether) : 0) {}

  static constexpr int64_t kMax = 128;  // positions: 256 KB at 512 channels
  int64_t count;
  int64_t groups;  // of kTogether positions in each block; the last ones may lie beyond the end
};

// out[p][c] = sum_k taps[p][k] * x[p + k][c] for kTogether positions p and N vectors of channels
// from c on, added in order of k. Only the inputs x[first .. last) exist; others are not read. A
// row of x and of out has `channels` elements, a row of taps `stride`. width >= kTogether - 1.
template <int W, int N, class T>
LINNET_INLINE void SumTogether(const float* taps, int64_t stride, int64_t width, const T* x,
                               int64_t first, int64_t last, int64_t channels, int64_t c, T* out) {
  using V = Vectors<W>;
  constexpr int P = kTogether;
  typename V::Floats sums[P][N] = {};
  // Input i is multiplied with tap i - p of position p, where that tap exists.
#pragma GCC unroll 8
  for (int i = 0; i < P - 1; ++i) {
    if (i < first || i >= last) continue;
    typename V::Floats row[N];
    V::template LoadMany<N>(x + i * channels + c, row);
#pragma GCC unroll 8
    for (int p = 0; p <= i; ++p) {
      for (int n = 0; n < N; ++n) sums[p][n] += taps[p * stride + i - p] * row[n];
    }
  }
  const int64_t end = std::min(width, last);
  for (int64_t i = std::max<int64_t>(P - 1, first); i < end; ++i) {
    typename V::Floats row[N];
    V::template LoadMany<N>(x + i * channels + c, row);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const auto tap = typename V::Floats{} + taps[p * stride + i - p];
      for (int n = 0; n < N; ++n) sums[p][n] += tap * row[n];
    }
  }
#pragma GCC unroll 8
  for (int back = 1; back < P; ++back) {
    const int64_t i = width - 1 + back;
    if (i < first || i >= last) continue;
    typename V::Floats row[N];
    V::template LoadMany<N>(x + i * channels + c, row);
#pragma GCC unroll 8
    for (int p = back; p < P; ++p) {
      for (int n = 0; n < N; ++n) sums[p][n] += taps[p * stride + i - p] * row[n];
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) V::template StoreMany<N>(sums[p], out + p * channels + c);
}

template <class T>
struct Convolve {
  // Items are numbered [batch, blocks, heads, groups]. `filters` holds light_conv's taps, null for
  // dynamic_conv, which computes kTogether filters in own_taps.
  template <int W>
  static LINNET_INLINE void Run(const ConvolutionParams& p, const Blocks& blocks, int64_t stride,
                                const float* filters, float* own_taps, int64_t begin, int64_t end) {
    const int64_t head_channels = p.channels / p.heads;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t h = item / blocks.groups % p.heads;
      const int64_t block = item / blocks.groups / p.heads;
      const int64_t b = block / blocks.count;
      const int64_t t = (block % blocks.count * blocks.groups + item % blocks.groups) * kTogether;
      const int64_t start = FirstPosition(p.starts, b);
      const int64_t padded = std::clamp<int64_t>(p.time - t, 0, kTogether);
      const int64_t count = std::clamp<int64_t>(p.lengths[b] - start - t, 0, padded);
      const int64_t position = b * p.time + t;
      T* out = static_cast<T*>(p.y) + position * p.channels + h * head_channels;
      for (int64_t i = count; i < padded; ++i) {
        std::fill_n(out + i * p.channels, head_channels, T{});
      }
      const float* taps = filters ? filters + h * stride : own_taps;
      if (!filters) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t filter = (position + i) * p.heads + h;
          Softmax<W>(static_cast<const T*>(p.weight) + filter * p.width, p.width,
                     (p.batch * p.time * p.heads - filter) * p.width, own_taps + i * stride);
        }
      }
      const T* x =
          static_cast<const T*>(p.x) + h * head_channels + (position - p.padding_left) * p.channels;
      // The range of inputs that exist, relative to the first tap of position t.
      const int64_t first = p.padding_left - start - t, last = first + p.lengths[b];
      const int64_t taps_stride = filters ? 0 : stride;
      if (count == kTogether && p.width >= kTogether - 1 && head_channels >= W) {
        constexpr int kMany = W == 16 ? 4 : 2;  // as many as the registers hold
        int64_t c = 0;
        for (; c + kMany * W <= head_channels; c += kMany * W) {
          SumTogether<W, kMany>(taps, taps_stride, p.width, x, first, last, p.channels, c, out);
        }
        for (; c < head_channels; c += W) {  // the last vector may cover some channels again
          SumTogether<W, 1>(taps, taps_stride, p.width, x, first, last, p.channels,
                            std::min(c, head_channels - W), out);
        }
        continue;
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t from = std::max<int64_t>(0, first - i);
        const auto rows = [&](int64_t j) __attribute__((always_inline)) {
          return x + (i + from + j) * p.channels;
        };
        WeightedSum<W>(RowWeights{taps + i * taps_stride + from},
                       std::min(p.width, last - i) - from, rows, head_channels,
                       out + i * p.channels);
      }
    }
  }
};

template <class T>
void Run(const ConvolutionParams& p) {
  const int64_t stride = PaddedWidth(p.width);
  const std::unique_ptr<float[]> filters = LightFilters<T>(p, stride);
  const Blocks blocks(p.time);
  const int64_t items = p.batch * blocks.count * p.heads * blocks.groups;
  const int64_t flops = kTogether * p.width * (p.channels / p.heads + 8);  // 8: an exponential
  ParallelFor(items, flops, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float[]> own_taps(new float[kTogether * stride]);
    RunBest<Convolve<T>>(p, blocks, stride, static_cast<const float*>(filters.get()),
                         own_taps.get(), begin, end);
  });
}

}  // namespace

void ConvolutionCpu(const ConvolutionParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
