#include <algorithm>

#include "model/ops/cuda/convolve_state.cuh"

namespace linnet::ops {
namespace {

constexpr int kGatedThreads = 256;

// One block computes one head of one row: the gate of the whole row, the head's taps, their
// softmax, and the convolution of the head's channels. N channels per load.
template <class T, int N>
__global__ void __launch_bounds__(kGatedThreads) ConvolveGated(GatedConvStepParams p) {
  extern __shared__ int64_t shared[];  // offsets [width], taps [width], inputs [channels]
  int64_t* offsets = shared;
  float* taps = reinterpret_cast<float*>(offsets + p.width);
  float* inputs = taps + p.width;
  const int64_t row = blockIdx.x;
  const int64_t head = blockIdx.y;
  const int head_channels = p.channels / p.heads;
  const int64_t first = head * head_channels;
  T* y = static_cast<T*>(p.y) + row * p.channels + first;
  if (IsIdle(p.state, row)) {
    for (int c = threadIdx.x; c < head_channels; c += blockDim.x) y[c] = FromFloat<T>(0.0f);
    return;
  }

  const T* z = static_cast<const T*>(p.z) + row * (p.gated ? 2 : 1) * p.channels;
  for (int c = threadIdx.x * N; c < p.channels; c += blockDim.x * N) {
    const auto value = *reinterpret_cast<const Pack<T, N>*>(z + c);
    Pack<T, N> gate = value;
    if (p.gated) gate = *reinterpret_cast<const Pack<T, N>*>(z + p.channels + c);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float x = ToFloat(value.at[i]);
      if (p.gated) x = ToFloat(FromFloat<T>(x / (1.0f + __expf(-ToFloat(gate.at[i])))));
      inputs[c + i] = x;
    }
  }
  for (int j = threadIdx.x; j < p.width; j += blockDim.x) {
    offsets[j] = j == 0 || j <= p.state.positions[row] ? EntryOffset(p.state, row, j) : -1;
  }
  __syncthreads();

  const int lane = threadIdx.x % kWarp;
  const T* weight = static_cast<const T*>(p.taps_weight) + head * p.width * p.channels;
  for (int k = threadIdx.x / kWarp; k < p.width; k += blockDim.x / kWarp) {
    const T* own = weight + k * p.channels;
    float sum = 0.0f;
#pragma unroll 4
    for (int c = lane * N; c < p.channels; c += kWarp * N) {
      const auto factor = *reinterpret_cast<const Pack<T, N>*>(own + c);
#pragma unroll
      for (int i = 0; i < N; ++i) sum += ToFloat(factor.at[i]) * inputs[c + i];
    }
    sum = WarpSum(sum);
    if (lane == 0) taps[k] = sum;
  }
  __syncthreads();
  if (threadIdx.x < kWarp) WarpSoftmax(taps, p.width, taps);
  __syncthreads();

  for (int c = threadIdx.x; c < head_channels; c += blockDim.x) {
    T* data = static_cast<T*>(p.state.data) + first + c;
    const float own = inputs[first + c];
    float sum = 0.0f;
#pragma unroll 8
    for (int j = p.width - 1; j > 0; --j) {  // the oldest first
      if (offsets[j] >= 0) sum += taps[p.width - 1 - j] * ToFloat(data[offsets[j]]);
    }
    y[c] = FromFloat<T>(sum + taps[p.width - 1] * own);
    data[offsets[0]] = FromFloat<T>(own);
  }
}

}  // namespace

void GatedConvStepCuda(const GatedConvStepParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const dim3 grid(p.rows, p.heads);
  const int64_t shared_bytes = GatedConvStepBytes(p.channels, p.width);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kMany = kStepPack<T>;
    if (p.channels % kMany == 0 && CanPack<T>({p.z, p.taps_weight})) {
      ConvolveGated<T, kMany><<<grid, kGatedThreads, shared_bytes, cuda_stream>>>(p);
    } else {
      ConvolveGated<T, 1><<<grid, kGatedThreads, shared_bytes, cuda_stream>>>(p);
    }
  });
}

}  // namespace linnet::ops
