#pragma once

#include "model/ops/cuda/device.cuh"

// One attention head, from one position to `count` others. The CUDA kernels of attention share this
// file.
namespace linnet::ops {

constexpr int kAttentionWarps = 8;
constexpr int kAttentionThreads = kAttentionWarps * kWarp;

template <class T>
struct KeyValue {
  const T* key;
  const T* value;
};

// Loads channels first … first + N - 1 of a head as float32, 0 after its last one; in one
// instruction where all exist and are aligned.
template <int N, class T>
__device__ __forceinline__ void LoadChannels(const T* head, int first, int head_size, float* out) {
  if (first + N <= head_size &&
      reinterpret_cast<uintptr_t>(head + first) % sizeof(Pack<T, N>) == 0) {
    const auto pack = *reinterpret_cast<const Pack<T, N>*>(head + first);
#pragma unroll
    for (int i = 0; i < N; ++i) out[i] = ToFloat(pack.at[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = first + i < head_size ? ToFloat(head[first + i]) : 0.0f;
}

// y_q = sum_i softmax_i(scale * query_q . find(i).key) * find(i).value for q < queries <= Q,
// computed by one whole block, which reads each key and value once. Query q and its result lie
// q * stride after own_query and y. `find` maps 0 .. count - 1 to a KeyValue. head_size <= N *
// kWarp.
//
// Each warp reads every eighth i, with N channels of the head per lane, and keeps a running
// softmax for each query: the highest score so far, the sum of exponentials relative to it, and the
// weighted sum of values. The results of the warps are combined at the end. A query's result does
// not depend on the others.
template <int N, int Q, class T, class Find>
__device__ __forceinline__ void AttendHead(const T* own_query, int64_t stride, int queries,
                                           int head_size, float scale, int count, const Find& find,
                                           T* y) {
  __shared__ float highest_of[Q][kAttentionWarps], sum_of[Q][kAttentionWarps];
  __shared__ float values_of[Q][kAttentionWarps][N * kWarp];
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const int first = lane * N;
  float query[Q][N] = {}, values[Q][N] = {}, highest[Q], sum[Q];
#pragma unroll
  for (int q = 0; q < Q; ++q) {
    highest[q] = -INFINITY;
    sum[q] = 0.0f;
    if (q < queries) LoadChannels<N>(own_query + q * stride, first, head_size, query[q]);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      query[q][i] *= scale;
    }
  }
#pragma unroll 4
  for (int s = warp; s < count; s += kAttentionWarps) {
    const KeyValue<T> at = find(s);
    float own_key[N], own_values[N];
    LoadChannels<N>(at.key, first, head_size, own_key);
    LoadChannels<N>(at.value, first, head_size, own_values);
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      if (q >= queries) continue;
      float score = 0.0f;
#pragma unroll
      for (int i = 0; i < N; ++i) score += query[q][i] * own_key[i];
      score = WarpSum(score);
      const float now_highest = fmaxf(highest[q], score);
      const float shrink = __expf(highest[q] - now_highest);  // 0 at the first key
      const float e = __expf(score - now_highest);
      sum[q] = sum[q] * shrink + e;
#pragma unroll
      for (int i = 0; i < N; ++i) values[q][i] = values[q][i] * shrink + e * own_values[i];
      highest[q] = now_highest;
    }
  }

#pragma unroll
  for (int q = 0; q < Q; ++q) {
    if (q >= queries) continue;
    if (lane == 0) {
      highest_of[q][warp] = highest[q];
      sum_of[q][warp] = sum[q];
    }
#pragma unroll
    for (int i = 0; i < N; ++i) values_of[q][warp][first + i] = values[q][i];
  }
  __syncthreads();
  for (int at = threadIdx.x; at < queries * head_size; at += kAttentionThreads) {
    const int q = at / head_size;
    const int c = at % head_size;
    float top = -INFINITY, total = 0.0f, value = 0.0f;
    for (int w = 0; w < kAttentionWarps; ++w) top = fmaxf(top, highest_of[q][w]);
    for (int w = 0; w < min(kAttentionWarps, count); ++w) {  // the others had no key
      const float part = __expf(highest_of[q][w] - top);
      total += sum_of[q][w] * part;
      value += values_of[q][w][c] * part;
    }
    y[q * stride + c] = FromFloat<T>(count > 0 ? value / total : 0.0f);
  }
}

// Calls launch with the number of channels per lane.
template <class Launch>
void DispatchHeadSize(int64_t head_size, const Launch& launch) {
  if (head_size <= 1 * kWarp) return launch(Width<1>{});
  if (head_size <= 2 * kWarp) return launch(Width<2>{});
  if (head_size <= 4 * kWarp) return launch(Width<4>{});
  static_assert(kMaxCudaHeadSize == 8 * kWarp);
  return launch(Width<8>{});  // the operator's checks allow at most kMaxCudaHeadSize
}

}  // namespace linnet::ops
