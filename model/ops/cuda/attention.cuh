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

// y = sum_i softmax_i(scale * query . find(i).key) * find(i).value, computed by one whole block.
// `find` maps 0 .. count - 1 to a KeyValue. head_size <= N * kWarp.
//
// Each warp reads every eighth i, with N channels of the head per lane, and keeps a running
// softmax: the highest score so far, the sum of exponentials relative to it, and the weighted sum
// of values. The results of the warps are combined at the end.
template <int N, class T, class Find>
__device__ __forceinline__ void AttendHead(const T* own_query, int head_size, float scale,
                                           int count, const Find& find, T* y) {
  __shared__ float highest_of[kAttentionWarps], sum_of[kAttentionWarps];
  __shared__ float values_of[kAttentionWarps][N * kWarp];
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const int first = lane * N;
  float query[N], values[N] = {};
  LoadChannels<N>(own_query, first, head_size, query);
#pragma unroll
  for (int i = 0; i < N; ++i) query[i] *= scale;
  float highest = -INFINITY, sum = 0.0f;
#pragma unroll 4
  for (int s = warp; s < count; s += kAttentionWarps) {
    const KeyValue<T> at = find(s);
    float score = 0.0f, own_key[N], own_values[N];
    LoadChannels<N>(at.key, first, head_size, own_key);
    LoadChannels<N>(at.value, first, head_size, own_values);
#pragma unroll
    for (int i = 0; i < N; ++i) score += query[i] * own_key[i];
    score = WarpSum(score);
    const float now_highest = fmaxf(highest, score);
    const float shrink = __expf(highest - now_highest);  // 0 at the first key
    const float e = __expf(score - now_highest);
    sum = sum * shrink + e;
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = values[i] * shrink + e * own_values[i];
    highest = now_highest;
  }

  if (lane == 0) {
    highest_of[warp] = highest;
    sum_of[warp] = sum;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) values_of[warp][first + i] = values[i];
  __syncthreads();
  for (int c = threadIdx.x; c < head_size; c += kAttentionThreads) {
    float top = -INFINITY, total = 0.0f, value = 0.0f;
    for (int w = 0; w < kAttentionWarps; ++w) top = fmaxf(top, highest_of[w]);
    for (int w = 0; w < min(kAttentionWarps, count); ++w) {  // the others had no key
      const float part = __expf(highest_of[w] - top);
      total += sum_of[w] * part;
      value += values_of[w][c] * part;
    }
    y[c] = FromFloat<T>(count > 0 ? value / total : 0.0f);
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
