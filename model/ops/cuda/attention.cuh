#pragma once

#include "model/ops/cuda/device.cuh"

// One attention head, from one position to `count` others, computed by one warp. The CUDA kernels
// of attention share this file.
namespace linnet::ops {

constexpr int kAttentionWarps = 4;  // heads of a block, which may be of several rows
constexpr int kAttentionThreads = kAttentionWarps * kWarp;

// The head of a warp, counted through all rows; at least rows * heads if there is none left for it.
__device__ __forceinline__ int64_t HeadOfWarp() {
  return int64_t{blockIdx.x} * kAttentionWarps + threadIdx.x / kWarp;
}

inline int64_t AttentionBlocks(int64_t rows, int64_t heads) {
  return DivideUp(rows * heads, kAttentionWarps);
}

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
// computed by one whole warp, which reads each key and value once. Query q and its result lie
// q * stride after own_query and y. `find` maps 0 .. count - 1 to a KeyValue. head_size <= N *
// kWarp.
//
// For 32 keys at a time, each lane computes the scores of one key, so that only the softmax needs
// exchanges; then it sums N channels of the values. What it loads depends on nothing before, so
// that many loads are in flight. A running softmax joins the parts: the highest score so far, the
// sum of exponentials relative to it, and the weighted sum of values. A query's result does not
// depend on the others.
template <int N, int Q, class T, class Find>
__device__ __forceinline__ void AttendHead(const T* own_query, int64_t stride, int queries,
                                           int head_size, float scale, int count, const Find& find,
                                           T* y) {
  constexpr int kLoad = 16 / sizeof(T);  // channels of a key that one instruction loads
  alignas(16) __shared__ float query_of[kAttentionWarps][Q][N * kWarp];
  __shared__ float weight_of[kAttentionWarps][Q][kWarp];
  auto& query = query_of[threadIdx.x / kWarp];
  auto& weight = weight_of[threadIdx.x / kWarp];
  const int lane = threadIdx.x % kWarp;
  const int first = lane * N;
  float values[Q][N] = {}, highest[Q], sum[Q];
#pragma unroll
  for (int q = 0; q < Q; ++q) {
    highest[q] = -INFINITY;
    sum[q] = 0.0f;
    if (q >= queries) continue;
    float own[N];
    LoadChannels<N>(own_query + q * stride, first, head_size, own);
#pragma unroll
    for (int i = 0; i < N; ++i) query[q][first + i] = own[i] * scale;
  }
  __syncwarp();
  for (int begin = 0; begin < count; begin += kWarp) {
    const bool exists = begin + lane < count;
    const KeyValue<T> at = find(min(begin + lane, count - 1));
    float score[Q] = {};
#pragma unroll 4
    for (int c = 0; c < head_size; c += kLoad) {
      float key[kLoad];
      LoadChannels<kLoad>(at.key, c, head_size, key);
#pragma unroll
      for (int q = 0; q < Q; ++q) {
        if (q >= queries) continue;
#pragma unroll
        for (int i = 0; i < kLoad; ++i) score[q] += query[q][c + i] * key[i];
      }
    }
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      if (q >= queries) continue;
      const float now_highest = fmaxf(highest[q], WarpMax(exists ? score[q] : -INFINITY));
      const float shrink = __expf(highest[q] - now_highest);  // 0 at the first keys
      const float e = exists ? __expf(score[q] - now_highest) : 0.0f;
      sum[q] = sum[q] * shrink + WarpSum(e);
      weight[q][lane] = e;
#pragma unroll
      for (int i = 0; i < N; ++i) values[q][i] *= shrink;
      highest[q] = now_highest;
    }
    __syncwarp();
    const auto own_value = reinterpret_cast<unsigned long long>(at.value);
#pragma unroll 8
    for (int s = 0; s < min(kWarp, count - begin); ++s) {
      const auto* value = reinterpret_cast<const T*>(__shfl_sync(kWholeWarp, own_value, s));
      float channels[N];
      LoadChannels<N>(value, first, head_size, channels);
#pragma unroll
      for (int q = 0; q < Q; ++q) {
        if (q >= queries) continue;
#pragma unroll
        for (int i = 0; i < N; ++i) values[q][i] += weight[q][s] * channels[i];
      }
    }
    __syncwarp();  // before the weights of the next keys
  }

#pragma unroll
  for (int q = 0; q < Q; ++q) {
    if (q >= queries) continue;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (first + i >= head_size) continue;
      y[q * stride + first + i] = FromFloat<T>(count > 0 ? values[q][i] / sum[q] : 0.0f);
    }
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
