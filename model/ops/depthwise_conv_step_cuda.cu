#include <algorithm>

#include "model/ops/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kMaxThreads = 256;

// One block: blockDim.x * N channels of one row; convolution and the window's update are one
// launch. All other inputs that a row reads are of earlier steps, and its own of this step comes
// from x, so blocks need not wait for each other. All loads of a thread are independent and in
// flight together.
template <class T, int K, int N>
__global__ void __launch_bounds__(kMaxThreads) ConvolveStep(DepthwiseConvStepParams p) {
  __shared__ int64_t offsets[K];  // [i] of i * dilation steps ago; -1 where nothing was yet
  const int64_t row = blockIdx.x;
  const int64_t c = (int64_t(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  const int64_t element = row * p.channels + c;
  Pack<T, N> out;
  if (IsIdle(p.window, row)) {
    if (c >= p.channels) return;
#pragma unroll
    for (int i = 0; i < N; ++i) out.at[i] = FromFloat<T>(0.0f);
    reinterpret_cast<Pack<T, N>*>(p.y)[element / N] = out;
    return;
  }
  for (int i = threadIdx.x; i < K; i += blockDim.x) {
    const int64_t j = i * p.dilation;
    offsets[i] = j == 0 || j <= p.window.positions[row] ? EntryOffset(p.window, row, j) : -1;
  }
  __syncthreads();
  if (c >= p.channels) return;

  const T* taps = static_cast<const T*>(p.taps) + c;
  T* window = static_cast<T*>(p.window.data) + c;
  Pack<T, N> inputs[K];
  inputs[0] = reinterpret_cast<const Pack<T, N>*>(p.x)[element / N];
#pragma unroll
  for (int i = 1; i < K; ++i) {
    if (offsets[i] >= 0) inputs[i] = *reinterpret_cast<const Pack<T, N>*>(window + offsets[i]);
  }
  float sums[N] = {};
#pragma unroll
  for (int i = K - 1; i >= 0; --i) {
    if (offsets[i] < 0) continue;
    const auto tap = *reinterpret_cast<const Pack<T, N>*>(taps + (K - 1 - i) * p.channels);
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] += ToFloat(tap.at[n]) * ToFloat(inputs[i].at[n]);
  }
#pragma unroll
  for (int n = 0; n < N; ++n) out.at[n] = FromFloat<T>(sums[n]);
  reinterpret_cast<Pack<T, N>*>(p.y)[element / N] = out;
  *reinterpret_cast<Pack<T, N>*>(window + offsets[0]) = inputs[0];
}

// Any width, one thread per output.
template <class T>
__global__ void __launch_bounds__(kMaxThreads) ConvolveStepAny(DepthwiseConvStepParams p) {
  const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= p.rows * p.channels) return;
  const int64_t row = element / p.channels;
  const int64_t c = element % p.channels;
  T* y = static_cast<T*>(p.y);
  if (IsIdle(p.window, row)) {
    y[element] = FromFloat<T>(0.0f);
    return;
  }
  const T x = static_cast<const T*>(p.x)[element];
  const T* taps = static_cast<const T*>(p.taps) + c;
  T* window = static_cast<T*>(p.window.data) + c;
  float sum = 0.0f;
  for (int64_t i = min(p.width - 1, p.window.positions[row] / p.dilation); i > 0; --i) {
    sum += ToFloat(taps[(p.width - 1 - i) * p.channels]) *
           ToFloat(window[EntryOffset(p.window, row, i * p.dilation)]);
  }
  sum += ToFloat(taps[(p.width - 1) * p.channels]) * ToFloat(x);
  y[element] = FromFloat<T>(sum);
  window[EntryOffset(p.window, row, 0)] = x;
}

template <class T>
bool Aligned(const DepthwiseConvStepParams& p, int64_t elements) {
  const auto bytes = elements * sizeof(T);
  const auto fits = [&](const void* at) { return reinterpret_cast<uintptr_t>(at) % bytes == 0; };
  return p.channels % elements == 0 && fits(p.x) && fits(p.taps) && fits(p.window.data) &&
         fits(p.y);
}

template <class T, int K, int N>
void Launch(const DepthwiseConvStepParams& p, cudaStream_t stream) {
  const int64_t threads =
      std::min<int64_t>(kMaxThreads, DivideUp(DivideUp(p.channels, N), kWarp) * kWarp);
  const dim3 grid(p.rows, DivideUp(p.channels, threads * N));
  ConvolveStep<T, K, N><<<grid, threads, 0, stream>>>(p);
}

}  // namespace

void DepthwiseConvStepCuda(const DepthwiseConvStepParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    DispatchWidth(p.width, [&](auto width) {
      constexpr int K = decltype(width)::value;
      if constexpr (K > 0) {
        constexpr int kMany = 8 / sizeof(T);  // 8 bytes per thread: 256 bytes per warp and load
        if (Aligned<T>(p, kMany)) {
          Launch<T, K, kMany>(p, cuda_stream);
        } else {
          Launch<T, K, 1>(p, cuda_stream);
        }
      } else {
        ConvolveStepAny<T>
            <<<DivideUp(p.rows * p.channels, kMaxThreads), kMaxThreads, 0, cuda_stream>>>(p);
      }
    });
  });
}

}  // namespace linnet::ops
