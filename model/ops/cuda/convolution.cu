#include "model/ops/cuda/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kThreads = 128;  // channels of a tile, one per thread: reads and writes are coalesced
constexpr int kPositions = 16;  // positions of a tile, all in registers of that thread
constexpr int kMaxTileHeads =
    8;  // 16 KB of taps at width 31; narrower heads take the general kernel

// Taps in shared memory are padded to a multiple of four, so that one instruction reads four of
// them.
template <int K>
constexpr int kTapStride = (K + 3) / 4 * 4;

// Max number of heads in a tile of channels, wherever the tile begins.
int64_t TileHeads(const ConvolutionParams& p) {
  const int64_t head_channels = p.channels / p.heads;
  return kThreads % head_channels == 0 ? kThreads / head_channels
                                       : (kThreads - 1) / head_channels + 2;
}

// One block computes kThreads channels of kPositions neighbouring positions of one sequence. Its
// warps first normalise the filters of the tile into shared memory; then each thread reads the
// inputs of its channel once, into registers, and sums.
template <class T, int K>
__global__ void __launch_bounds__(kThreads)
    Convolve(ConvolutionParams p, int channel_tiles, int time_tiles) {
  __shared__ __align__(16) float taps[kPositions * kMaxTileHeads * kTapStride<K>];
  const int channel_tile = blockIdx.x % channel_tiles;
  const int start = blockIdx.x / channel_tiles % time_tiles * kPositions;
  const int64_t b = blockIdx.x / channel_tiles / time_tiles;
  const int length = p.lengths[b], row_start = FirstPosition(p.starts, b);
  AssertSequence(p, b);

  const int head_channels = p.channels / p.heads;
  const int first_head = channel_tile * kThreads / head_channels;
  const int64_t last_channel = min(p.channels, int64_t(channel_tile + 1) * kThreads) - 1;
  const int tile_heads = last_channel / head_channels - first_head + 1;
  const int positions = min(kPositions, int(p.time) - start);
  const int filters = p.dynamic ? max(0, min(positions, length - row_start - start)) : 1;
  const T* weight = static_cast<const T*>(p.weight);
  for (int i = threadIdx.x / kWarp; i < filters * tile_heads; i += kThreads / kWarp) {
    const int64_t position = p.dynamic ? b * p.time + start + i / tile_heads : 0;
    const int64_t head = first_head + i % tile_heads;
    WarpSoftmax(weight + (position * p.heads + head) * K, K, taps + i * kTapStride<K>);
  }
  __syncthreads();

  const int64_t c = int64_t(channel_tile) * kThreads + threadIdx.x;
  if (c >= p.channels) return;
  const T* x = static_cast<const T*>(p.x) + (b * p.time - row_start) * p.channels + c;
  const int first = row_start + start;  // the tile's first position in its sequence
  float inputs[kPositions + K - 1];
#pragma unroll
  for (int i = 0; i < kPositions + K - 1; ++i) {
    const int t = first + i - int(p.padding_left);
    inputs[i] = 0 <= t && t < length ? ToFloat(x[t * p.channels]) : 0.0f;
  }
  const float* own_taps = taps + (c / head_channels - first_head) * kTapStride<K>;
  const int filter_stride = p.dynamic ? tile_heads * kTapStride<K> : 0;
  T* y = static_cast<T*>(p.y) + b * p.time * p.channels + c;
#pragma unroll
  for (int i = 0; i < kPositions; ++i) {
    if (start + i >= p.time) return;
    float sum = 0.0f;
    if (first + i < length) {
#pragma unroll
      for (int k = 0; k < K; k += 4) {
        const float4 four = *reinterpret_cast<const float4*>(own_taps + i * filter_stride + k);
        sum += four.x * inputs[i + k];
        if (k + 1 < K) sum += four.y * inputs[i + k + 1];
        if (k + 2 < K) sum += four.z * inputs[i + k + 2];
        if (k + 3 < K) sum += four.w * inputs[i + k + 3];
      }
    }
    y[(start + i) * p.channels] = FromFloat<T>(sum);
  }
}

// For any width and number of heads: one thread per output, no shared memory, taps computed per
// thread.
template <class T>
__global__ void __launch_bounds__(kThreads) ConvolveAny(ConvolutionParams p) {
  const int64_t element = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= p.batch * p.time * p.channels) return;
  const int64_t c = element % p.channels;
  const int64_t position = element / p.channels;
  const int64_t b = position / p.time;
  const int64_t t = FirstPosition(p.starts, b) + position % p.time;
  const int64_t length = p.lengths[b];
  AssertSequence(p, b);
  float sum = 0.0f;
  if (t < length) {
    const int64_t head = c / (p.channels / p.heads);
    const T* weight =
        static_cast<const T*>(p.weight) + ((p.dynamic ? position * p.heads : 0) + head) * p.width;
    const SoftmaxScale softmax(weight, p.width);
    const int64_t first = max(int64_t{0}, p.padding_left - t);
    const int64_t last = min(p.width, length - t + p.padding_left);
    const T* x = static_cast<const T*>(p.x) + element - p.padding_left * p.channels;
    for (int64_t k = first; k < last; ++k) {
      sum += softmax.Tap(ToFloat(weight[k])) * ToFloat(x[k * p.channels]);
    }
  }
  static_cast<T*>(p.y)[element] = FromFloat<T>(sum);
}

}  // namespace

void ConvolutionCuda(const ConvolutionParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    DispatchWidth(p.width, [&](auto width) {
      constexpr int K = decltype(width)::value;
      if constexpr (K > 0) {
        if (TileHeads(p) <= kMaxTileHeads) {
          const int64_t channel_tiles = DivideUp(p.channels, kThreads);
          const int64_t time_tiles = DivideUp(p.time, kPositions);
          Convolve<T, K><<<channel_tiles * time_tiles * p.batch, kThreads, 0, cuda_stream>>>(
              p, channel_tiles, time_tiles);
          return;
        }
      }
      ConvolveAny<T>
          <<<DivideUp(p.batch * p.time * p.channels, kThreads), kThreads, 0, cuda_stream>>>(p);
    });
  });
}

}  // namespace linnet::ops
