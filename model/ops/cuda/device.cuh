#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#undef NDEBUG  // device assertions check indices in every build
#include <cassert>

#include "model/ops/first_position.h"
#include "model/ops/params.h"

// Shared code of the CUDA kernels. Sums are kept in float32; the types below are those in memory.
namespace linnet::ops {

constexpr int kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

__device__ __forceinline__ float ToFloat(float value) { return value; }
__device__ __forceinline__ float ToFloat(__half value) { return __half2float(value); }
__device__ __forceinline__ float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__device__ __forceinline__ T FromFloat(float value);
template <>
__device__ __forceinline__ float FromFloat<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ __half FromFloat<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_bfloat16 FromFloat<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// N neighbouring elements, read and written by one instruction; addresses must be aligned to them.
template <class T, int N>
struct alignas(N * sizeof(T)) Pack {
  T at[N];
};

__device__ __forceinline__ float WarpSum(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, offset);
  }
  return value;
}

__device__ __forceinline__ float WarpMax(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

// taps[k] = softmax(scores)[k], computed by one whole warp; `taps` is in shared memory.
template <class T>
__device__ __forceinline__ void WarpSoftmax(const T* scores, int width, float* taps) {
  const int lane = threadIdx.x % kWarp;
  float highest = -INFINITY;
  for (int k = lane; k < width; k += kWarp) highest = fmaxf(highest, ToFloat(scores[k]));
  highest = WarpMax(highest);
  float sum = 0.0f;
  for (int k = lane; k < width; k += kWarp) {
    const float e = __expf(ToFloat(scores[k]) - highest);
    taps[k] = e;
    sum += e;
  }
  const float scale = 1.0f / WarpSum(sum);
  for (int k = lane; k < width; k += kWarp) taps[k] *= scale;
}

// Highest score and 1 / sum of exponentials, computed by one thread: for kernels without shared
// memory.
struct SoftmaxScale {
  float highest, scale;

  template <class T>
  __device__ SoftmaxScale(const T* scores, int64_t width) : highest(-INFINITY) {
    for (int64_t k = 0; k < width; ++k) highest = fmaxf(highest, ToFloat(scores[k]));
    float sum = 0.0f;
    for (int64_t k = 0; k < width; ++k) sum += __expf(ToFloat(scores[k]) - highest);
    scale = 1.0f / sum;
  }

  __device__ float Tap(float score) const { return __expf(score - highest) * scale; }
};

// Offset in the ring's data of the row's entry of j steps ago. Fails a device assertion if an index
// is out of range.
__device__ __forceinline__ int64_t EntryOffset(const Ring& ring, int64_t row, int64_t j) {
  const int position = ring.positions[row];
  const int slot = ring.backpointers[row * ring.backpointers_stride + j];
  assert(0 <= position && 0 <= slot && slot < ring.slots);
  return ((position - j) % ring.depth * ring.slots + slot) * ring.size;
}

// True for idle rows, which write no state and whose result is zero.
__device__ __forceinline__ bool IsIdle(const Ring& ring, int64_t row) {
  const int slot = ring.backpointers[row * ring.backpointers_stride];
  assert(slot >= -1);
  return slot < 0;
}

// Fails a device assertion if the sequence of row b does not lie within the batch.
template <class Params>
__device__ __forceinline__ void AssertSequence(const Params& p, int64_t b) {
  const int64_t start = FirstPosition(p.starts, b), length = p.lengths[b];
  assert(0 <= start && start <= b * p.time);
  assert(0 <= length && length <= (p.starts == nullptr ? p.time : start + (p.batch - b) * p.time));
}

// Calls launch(T{}) with the element type of `type`.
template <class Launch>
void DispatchType(FloatType type, const Launch& launch) {
  switch (type) {
    case FloatType::kFloat32:
      return launch(float{});
    case FloatType::kBFloat16:
      return launch(__nv_bfloat16{});
    case FloatType::kFloat16:
      return launch(__half{});
  }
}

// Calls launch with the filter width as a compile-time number if there is a kernel for it, and with
// 0, for the general kernel, otherwise.
template <int K>
struct Width {
  static constexpr int value = K;
};

template <class Launch>
void DispatchWidth(int64_t width, const Launch& launch) {
  switch (width) {
    case 3:
      return launch(Width<3>{});
    case 5:
      return launch(Width<5>{});
    case 7:
      return launch(Width<7>{});
    case 15:
      return launch(Width<15>{});
    case 31:
      return launch(Width<31>{});
    default:
      return launch(Width<0>{});
  }
}

inline int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace linnet::ops
