#pragma once

#include <algorithm>
#include <initializer_list>

#include "model/ops/cuda/device.cuh"

// What the kernels of a convolution's step share, whatever its taps are. A block has blockDim.x * N
// channels of one row. All other inputs that a row reads are of earlier steps, and its own of this
// step comes from x, so blocks need not wait for each other.
namespace linnet::ops {

constexpr int kStepThreads = 256;  // of a block at most

struct StepShape {
  dim3 grid;
  int64_t threads;
};

inline StepShape ShapeOf(int64_t rows, int64_t channels, int64_t per_thread) {
  const int64_t threads =
      std::min<int64_t>(kStepThreads, DivideUp(DivideUp(channels, per_thread), kWarp) * kWarp);
  return {dim3(rows, DivideUp(channels, threads * per_thread)), threads};
}

// 8 bytes per thread: 256 bytes per warp and load.
template <class T>
constexpr int kStepPack = 8 / sizeof(T);

// Whether all of these addresses can be read and written kStepPack elements at a time.
template <class T>
bool CanPack(std::initializer_list<const void*> addresses) {
  return std::all_of(addresses.begin(), addresses.end(), [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % (kStepPack<T> * sizeof(T)) == 0;
  });
}

// N zeros from that element of y on.
template <class T, int N>
__device__ __forceinline__ void WriteZeros(void* y, int64_t element) {
  Pack<T, N> zeros;
#pragma unroll
  for (int n = 0; n < N; ++n) zeros.at[n] = FromFloat<T>(0.0f);
  reinterpret_cast<Pack<T, N>*>(y)[element / N] = zeros;
}

// offsets[i] = where the row's input of i * dilation steps ago lies in the window, or -1 where
// nothing was yet. In shared memory, by all threads of the block, which wait for each other before
// they read it.
template <int K>
__device__ __forceinline__ void FindInputs(const Ring& state, int64_t row, int64_t dilation,
                                           int64_t* offsets) {
  for (int i = threadIdx.x; i < K; i += blockDim.x) {
    const int64_t j = i * dilation;
    offsets[i] = j == 0 || j <= state.positions[row] ? EntryOffset(state, row, j) : -1;
  }
}

// A tap for N channels: one for all of them, or one for each.
__device__ __forceinline__ float TapOf(float tap, int) { return tap; }
template <class T, int N>
__device__ __forceinline__ float TapOf(const Pack<T, N>& taps, int n) {
  return ToFloat(taps.at[n]);
}

// y = the sum of tap(i) times the input at offsets[i], the oldest first, for N channels from c on,
// which are those from `element` on of x and y; and the window gets this step's input.
//
// All K loads of a thread are independent and in flight together: at few rows that is what counts.
template <class T, int K, int N, class Tap>
__device__ __forceinline__ void ConvolveWindow(const void* x, const Ring& state,
                                               const int64_t* offsets, void* y, int64_t element,
                                               int64_t c, const Tap& tap) {
  T* data = static_cast<T*>(state.data) + c;
  Pack<T, N> inputs[K];
  inputs[0] = reinterpret_cast<const Pack<T, N>*>(x)[element / N];
#pragma unroll
  for (int i = 1; i < K; ++i) {
    if (offsets[i] >= 0) inputs[i] = *reinterpret_cast<const Pack<T, N>*>(data + offsets[i]);
  }
  float sums[N] = {};
#pragma unroll
  for (int i = K - 1; i >= 0; --i) {
    if (offsets[i] < 0) continue;
    const auto own = tap(i);
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] += TapOf(own, n) * ToFloat(inputs[i].at[n]);
  }
  Pack<T, N> out;
#pragma unroll
  for (int n = 0; n < N; ++n) out.at[n] = FromFloat<T>(sums[n]);
  reinterpret_cast<Pack<T, N>*>(y)[element / N] = out;
  *reinterpret_cast<Pack<T, N>*>(data + offsets[0]) = inputs[0];
}

}  // namespace linnet::ops
