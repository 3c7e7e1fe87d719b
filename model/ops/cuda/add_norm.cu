#include <algorithm>

#include "model/ops/cuda/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxWarps = kMaxThreads / kWarp;

// The sum over the threads of a block, the same bits in each. `parts` must not be shared with
// another call.
__device__ float BlockSum(float value, float* parts) {
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int w = 0; w < int(blockDim.x) / kWarp; ++w) sum += parts[w];
  return sum;
}

// One block computes one row. Its sums stay in shared memory between the passes. N channels per
// load.
template <class T, int N>
__global__ void __launch_bounds__(kMaxThreads) AddNormRows(AddNormParams p) {
  extern __shared__ float sums[];  // [channels]
  __shared__ float means[kMaxWarps], squares[kMaxWarps];
  const int64_t row = int64_t(blockIdx.x) * p.channels;
  const T* x = static_cast<const T*>(p.x) + row;
  const T* residual = static_cast<const T*>(p.residual) + row;
  const int step = blockDim.x * N;
  float total = 0.0f;
  for (int c = threadIdx.x * N; c < p.channels; c += step) {
    const auto own = *reinterpret_cast<const Pack<T, N>*>(x + c);
    const auto other = *reinterpret_cast<const Pack<T, N>*>(residual + c);
    Pack<T, N> sum;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sums[c + i] = ToFloat(own.at[i]) + ToFloat(other.at[i]);
      total += sums[c + i];
      sum.at[i] = FromFloat<T>(sums[c + i]);
    }
    if (p.sum != nullptr) *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(p.sum) + row + c) = sum;
  }
  const float mean = BlockSum(total, means) / p.channels;
  float square = 0.0f;
  for (int c = threadIdx.x * N; c < p.channels; c += step) {  // the same channels as above
#pragma unroll
    for (int i = 0; i < N; ++i) square += (sums[c + i] - mean) * (sums[c + i] - mean);
  }
  const float scale = rsqrtf(BlockSum(square, squares) / p.channels + p.epsilon);
  for (int c = threadIdx.x * N; c < p.channels; c += step) {
    const auto weight = *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(p.weight) + c);
    const auto bias = *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(p.bias) + c);
    Pack<T, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      out.at[i] =
          FromFloat<T>((sums[c + i] - mean) * scale * ToFloat(weight.at[i]) + ToFloat(bias.at[i]));
    }
    *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(p.y) + row + c) = out;
  }
}

// For rows too wide for shared memory: one block per row, which reads it three times.
template <class T>
__global__ void __launch_bounds__(kMaxThreads) AddNormWideRows(AddNormParams p) {
  __shared__ float means[kMaxWarps], squares[kMaxWarps];
  const int64_t row = int64_t(blockIdx.x) * p.channels;
  const auto sum_at = [&](int64_t c) {
    return ToFloat(static_cast<const T*>(p.x)[row + c]) +
           ToFloat(static_cast<const T*>(p.residual)[row + c]);
  };
  float total = 0.0f, square = 0.0f;
  for (int64_t c = threadIdx.x; c < p.channels; c += blockDim.x) {
    total += sum_at(c);
    if (p.sum != nullptr) static_cast<T*>(p.sum)[row + c] = FromFloat<T>(sum_at(c));
  }
  const float mean = BlockSum(total, means) / p.channels;
  for (int64_t c = threadIdx.x; c < p.channels; c += blockDim.x) {
    square += (sum_at(c) - mean) * (sum_at(c) - mean);
  }
  const float scale = rsqrtf(BlockSum(square, squares) / p.channels + p.epsilon);
  for (int64_t c = threadIdx.x; c < p.channels; c += blockDim.x) {
    static_cast<T*>(p.y)[row + c] =
        FromFloat<T>((sum_at(c) - mean) * scale * ToFloat(static_cast<const T*>(p.weight)[c]) +
                     ToFloat(static_cast<const T*>(p.bias)[c]));
  }
}

template <class T>
bool Aligned(const AddNormParams& p, int64_t elements) {
  const auto bytes = elements * sizeof(T);
  const auto fits = [&](const void* at) { return reinterpret_cast<uintptr_t>(at) % bytes == 0; };
  return p.channels % elements == 0 && fits(p.x) && fits(p.residual) && fits(p.weight) &&
         fits(p.bias) && fits(p.sum) && fits(p.y);
}

}  // namespace

void AddNormCuda(const AddNormParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const int64_t shared_bytes = p.channels * sizeof(float);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kMany = 8 / sizeof(T);
    const bool wide = shared_bytes + 2 * kMaxWarps * int64_t(sizeof(float)) > kCudaSharedBytes;
    const int64_t threads =
        std::min<int64_t>(kMaxThreads, DivideUp(DivideUp(p.channels, kMany), kWarp) * kWarp);
    if (wide) {
      AddNormWideRows<T><<<p.rows, kMaxThreads, 0, cuda_stream>>>(p);
    } else if (Aligned<T>(p, kMany)) {
      AddNormRows<T, kMany><<<p.rows, threads, shared_bytes, cuda_stream>>>(p);
    } else {
      AddNormRows<T, 1><<<p.rows, threads, shared_bytes, cuda_stream>>>(p);
    }
  });
}

}  // namespace linnet::ops
