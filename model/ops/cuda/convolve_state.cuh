#pragma once

#include <algorithm>
#include <initializer_list>

#include "model/ops/cuda/device.cuh"

// Shared code of the step kernels of both convolutions. A block has blockDim.x * N channels of one
// row. A row reads this step's input from x and all others from earlier steps, so blocks need no
// synchronisation.
namespace linnet::ops {

constexpr int kStepThreads = 256;  // max per block

struct StepShape {
  dim3 grid;
  int64_t threads;
};

inline StepShape MakeStepShape(int64_t rows, int64_t channels, int64_t per_thread) {
  const int64_t threads =
      std::min<int64_t>(kStepThreads, DivideUp(DivideUp(channels, per_thread), kWarp) * kWarp);
  return {dim3(rows, DivideUp(channels, threads * per_thread)), threads};
}

// 8 bytes per thread: 256 bytes per warp and load.
template <class T>
constexpr int kStepPack = 8 / sizeof(T);

// True if all of these addresses are aligned for access to kStepPack elements at a time.
template <class T>
bool CanPack(std::initializer_list<const void*> addresses) {
  return std::all_of(addresses.begin(), addresses.end(), [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % (kStepPack<T> * sizeof(T)) == 0;
  });
}

// Writes N zeros from `element` of y on.
template <class T, int N>
__device__ __forceinline__ void WriteZeros(void* y, int64_t element) {
  Pack<T, N> zeros;
#pragma unroll
  for (int n = 0; n < N; ++n) zeros.at[n] = FromFloat<T>(0.0f);
  reinterpret_cast<Pack<T, N>*>(y)[element / N] = zeros;
}

// offsets[i] = offset in the state of the row's input of i * dilation steps ago, or -1 before its
// first position. `offsets` is in shared memory; all threads of the block write it, and must
// synchronise before they read it.
template <int K>
__device__ __forceinline__ void FindInputs(const Ring& state, int64_t row, int64_t dilation,
                                           int64_t* offsets) {
  for (int i = threadIdx.x; i < K; i += blockDim.x) {
    const int64_t j = i * dilation;
    offsets[i] = j == 0 || j <= state.positions[row] ? EntryOffset(state, row, j) : -1;
  }
}

// Tap of channel i of N: one number for all of them, or one for each.
__device__ __forceinline__ float ReadTap(float tap, int) { return tap; }
template <class T, int N>
__device__ __forceinline__ float ReadTap(const Pack<T, N>& taps, int n) {
  return ToFloat(taps.at[n]);
}

// y = sum_i tap(i) * input at offsets[i], the oldest first, for N channels from c on, at `element`
// of x and y. Also writes this step's input to the state.
//
// All K loads of a thread are independent and in flight together, which hides their latency where
// rows are few.
template <class T, int K, int N, class Tap>
__device__ __forceinline__ void ConvolveState(const void* x, const Ring& state,
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
    for (int n = 0; n < N; ++n) sums[n] += ReadTap(own, n) * ToFloat(inputs[i].at[n]);
  }
  Pack<T, N> out;
#pragma unroll
  for (int n = 0; n < N; ++n) out.at[n] = FromFloat<T>(sums[n]);
  reinterpret_cast<Pack<T, N>*>(y)[element / N] = out;
  *reinterpret_cast<Pack<T, N>*>(data + offsets[0]) = inputs[0];
}

// The same for one channel c and any width: one thread per output, which finds its inputs itself.
template <class T, class Tap>
__device__ __forceinline__ void ConvolveElement(const void* x, const Ring& state, void* y,
                                                int64_t row, int64_t element, int64_t c,
                                                int64_t width, int64_t dilation, const Tap& tap) {
  const T own = static_cast<const T*>(x)[element];
  T* data = static_cast<T*>(state.data) + c;
  float sum = 0.0f;
  for (int64_t i = min(width - 1, state.positions[row] / dilation); i > 0; --i) {
    sum += tap(i) * ToFloat(data[EntryOffset(state, row, i * dilation)]);
  }
  sum += tap(0) * ToFloat(own);
  static_cast<T*>(y)[element] = FromFloat<T>(sum);
  data[EntryOffset(state, row, 0)] = own;
}

}  // namespace linnet::ops
