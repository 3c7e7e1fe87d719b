#include <algorithm>

#include "model/ops/cuda/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kThreads = 128;  // channels of a tile, one per thread: reads and writes are coalesced
constexpr int kPositions = 16;  // positions of a tile, all in registers of that thread

// One block computes kThreads channels of kPositions positions of one sequence. The positions are
// `dilation` apart, so that they share their inputs; each thread holds those of its channel in
// registers.
template <class T, int K>
__global__ void __launch_bounds__(kThreads)
    Convolve(DepthwiseConvParams p, int channel_tiles, int time_tiles, int residues) {
  const int64_t c = int64_t(blockIdx.x % channel_tiles) * kThreads + threadIdx.x;
  const int64_t tile = blockIdx.x / channel_tiles % time_tiles;
  const int64_t start = tile % residues + tile / residues * kPositions * p.dilation;
  const int64_t b = blockIdx.x / channel_tiles / time_tiles;
  const int64_t length = p.lengths[b], row_start = FirstPosition(p.starts, b);
  AssertSequence(p, b);
  if (c >= p.channels) return;

  const int64_t row = b * p.time * p.channels + c;
  const T* x = static_cast<const T*>(p.x) + row - row_start * p.channels;
  float inputs[kPositions + K - 1];
#pragma unroll
  for (int i = 0; i < kPositions + K - 1; ++i) {
    const int64_t t = row_start + start + i * p.dilation - p.padding_left;
    inputs[i] = 0 <= t && t < length ? ToFloat(x[t * p.channels]) : 0.0f;
  }
  const T* taps = static_cast<const T*>(p.taps) + c;
  float sums[kPositions] = {};
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const float tap = ToFloat(taps[k * p.channels]);
#pragma unroll
    for (int i = 0; i < kPositions; ++i) sums[i] += tap * inputs[i + k];
  }
  T* y = static_cast<T*>(p.y) + row;
#pragma unroll
  for (int i = 0; i < kPositions; ++i) {
    const int64_t t = start + i * p.dilation;
    if (t >= p.time) return;
    y[t * p.channels] = FromFloat<T>(row_start + t < length ? sums[i] : 0.0f);
  }
}

// For any width: one thread per output.
template <class T>
__global__ void __launch_bounds__(kThreads) ConvolveAny(DepthwiseConvParams p) {
  const int64_t element = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= p.batch * p.time * p.channels) return;
  const int64_t c = element % p.channels;
  const int64_t position = element / p.channels;
  const int64_t b = position / p.time;
  const int64_t row_start = FirstPosition(p.starts, b);
  const int64_t t = row_start + position % p.time;
  const int64_t length = p.lengths[b];
  AssertSequence(p, b);
  const T* x = static_cast<const T*>(p.x) + (b * p.time - row_start) * p.channels + c;
  const T* taps = static_cast<const T*>(p.taps) + c;
  float sum = 0.0f;
  for (int64_t k = 0; t < length && k < p.width; ++k) {
    const int64_t s = t + k * p.dilation - p.padding_left;
    if (s >= length) break;
    if (s >= 0) sum += ToFloat(taps[k * p.channels]) * ToFloat(x[s * p.channels]);
  }
  static_cast<T*>(p.y)[element] = FromFloat<T>(sum);
}

}  // namespace

void DepthwiseConvCuda(const DepthwiseConvParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    DispatchWidth(p.width, [&](auto width) {
      constexpr int K = decltype(width)::value;
      if constexpr (K > 0) {
        const int64_t channel_tiles = DivideUp(p.channels, kThreads);
        const int64_t residues = std::min(p.dilation, p.time);
        const int64_t time_tiles =
            residues * DivideUp(DivideUp(p.time, p.dilation), int64_t{kPositions});
        Convolve<T, K><<<channel_tiles * time_tiles * p.batch, kThreads, 0, cuda_stream>>>(
            p, channel_tiles, time_tiles, residues);
      } else {
        ConvolveAny<T>
            <<<DivideUp(p.batch * p.time * p.channels, kThreads), kThreads, 0, cuda_stream>>>(p);
      }
    });
  });
}

}  // namespace linnet::ops
