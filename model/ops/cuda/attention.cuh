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

// Channels first … first + N - 1 of a head, in one instruction if kWhole: the head then consists of
// whole aligned packs, and a lane behind the last one gets that, to have no branch among its loads.
// Otherwise channels after the last one are 0.
template <int N, bool kWhole, class T>
__device__ __forceinline__ Pack<T, N> LoadPack(const T* head, int first, int head_size) {
  if constexpr (kWhole) {
    return *reinterpret_cast<const Pack<T, N>*>(head + min(first, head_size - N));
  } else {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      pack.at[i] = first + i < head_size ? head[first + i] : FromFloat<T>(0.0f);
    }
    return pack;
  }
}

// True if the head consists of whole aligned packs of N channels.
template <int N, class T>
__device__ __forceinline__ bool IsWhole(const T* head, int head_size) {
  return head_size % N == 0 && reinterpret_cast<uintptr_t>(head) % sizeof(Pack<T, N>) == 0;
}

// score[q] += query[q] . key for q < queries, for one head. `query` is 0 after the head's last
// channel.
template <bool kWhole, int N, int Q, class T>
__device__ __forceinline__ void AddScores(const T* key, const float (&query)[Q][N * kWarp],
                                          int queries, int head_size, float (&score)[Q]) {
  constexpr int kChannels = 16 / sizeof(T);  // of a pack
  constexpr int kPacks = 4;                  // that are loaded before the first one is used
  for (int c = 0; c < head_size; c += kPacks * kChannels) {
    Pack<T, kChannels> packs[kPacks];
    float channels[kPacks][kChannels];
#pragma unroll
    for (int b = 0; b < kPacks; ++b) {
      packs[b] = LoadPack<kChannels, kWhole>(key, c + b * kChannels, head_size);
    }
#pragma unroll
    for (int b = 0; b < kPacks; ++b) {
      const bool exists = c + b * kChannels < head_size;
#pragma unroll
      for (int i = 0; i < kChannels; ++i) channels[b][i] = exists ? ToFloat(packs[b].at[i]) : 0.0f;
    }
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      if (q >= queries) break;
#pragma unroll
      for (int b = 0; b < kPacks; ++b) {
#pragma unroll
        for (int i = 0; i < kChannels; ++i) {
          score[q] += query[q][c + b * kChannels + i] * channels[b][i];
        }
      }
    }
  }
}

// sums[q] += sum_s weight[q][s] * value_s over the lane's N channels, for q < queries and s < count
// <= kWarp. Lane s has the address of value_s; lanes from count on have an address that can be read
// and the weight 0.
template <bool kWhole, int N, int Q, class T>
__device__ __forceinline__ void AddValues(const T* value, const float (&weight)[Q][kWarp],
                                          int queries, int head_size, int count,
                                          float (&sums)[Q][N]) {
  constexpr int kPacks = N <= 4 ? 8 : 4;
  static_assert(kWarp % kPacks == 0);
  const auto address = reinterpret_cast<unsigned long long>(value);
  const int first = threadIdx.x % kWarp * N;
  for (int s = 0; s < count; s += kPacks) {
    Pack<T, N> packs[kPacks];
    float channels[kPacks][N];
#pragma unroll
    for (int b = 0; b < kPacks; ++b) {
      const auto* head = reinterpret_cast<const T*>(__shfl_sync(kWholeWarp, address, s + b));
      packs[b] = LoadPack<N, kWhole>(head, first, head_size);
    }
#pragma unroll
    for (int b = 0; b < kPacks; ++b) {
#pragma unroll
      for (int i = 0; i < N; ++i) channels[b][i] = ToFloat(packs[b].at[i]);
    }
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      if (q >= queries) break;
#pragma unroll
      for (int b = 0; b < kPacks; ++b) {
#pragma unroll
        for (int i = 0; i < N; ++i)
          sums[q][i] = __fmaf_rn(weight[q][s + b], channels[b][i], sums[q][i]);
      }
    }
  }
}

// Rows of one head that read the same keys: query q and its result lie q strides after the first.
template <class T>
struct QueryRows {
  const T* query;
  int64_t query_stride;
  T* y;
  int64_t y_stride;
  int count;
};

// y_q = sum_i softmax_i(scale * query_q . find(i).key) * find(i).value for q < rows.count <= Q,
// computed by one whole warp, which reads each key and value once. `find` maps 0 .. count - 1 to a
// KeyValue. head_size <= N * kWarp.
//
// For 32 keys at a time, each lane computes the scores of one key, so that only the softmax needs
// exchanges; then it sums N channels of the values. A running softmax joins the parts: the highest
// score so far, the sum of exponentials relative to it, and the weighted sum of values. A query's
// result does not depend on the others, nor on Q: products are rounded where __fmul_rn and
// __fmaf_rn say, since a compiler may fuse either product of a * b + c * d.
template <int N, int Q, class T, class Find>
__device__ __forceinline__ void AttendHead(const QueryRows<T>& rows, int head_size, float scale,
                                           int count, const Find& find) {
  alignas(16) __shared__ float query_of[kAttentionWarps][Q][N * kWarp];
  __shared__ float weight_of[kAttentionWarps][Q][kWarp];
  auto& query = query_of[threadIdx.x / kWarp];
  auto& weight = weight_of[threadIdx.x / kWarp];
  const int queries = rows.count;
  const int lane = threadIdx.x % kWarp;
  const int first = lane * N;
  float values[Q][N] = {}, highest[Q], sum[Q];
#pragma unroll
  for (int q = 0; q < Q; ++q) {
    highest[q] = -INFINITY;
    sum[q] = 0.0f;
    if (q >= queries) continue;
    const auto own = LoadPack<N, false>(rows.query + q * rows.query_stride, first, head_size);
#pragma unroll
    for (int i = 0; i < N; ++i) query[q][first + i] = ToFloat(own.at[i]) * scale;
  }
  __syncwarp();
  for (int begin = 0; begin < count; begin += kWarp) {
    const bool exists = begin + lane < count;
    const KeyValue<T> at = find(min(begin + lane, count - 1));
    const bool whole = __all_sync(
        kWholeWarp, IsWhole<16 / sizeof(T)>(at.key, head_size) && IsWhole<N>(at.value, head_size));
    float score[Q] = {};
    if (whole) {
      AddScores<true, N>(at.key, query, queries, head_size, score);
    } else {
      AddScores<false, N>(at.key, query, queries, head_size, score);
    }
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      if (q >= queries) continue;
      const float now_highest = fmaxf(highest[q], WarpMax(exists ? score[q] : -INFINITY));
      const float shrink = __expf(highest[q] - now_highest);  // 0 at the first keys
      const float e = exists ? __expf(score[q] - now_highest) : 0.0f;
      sum[q] = __fmaf_rn(sum[q], shrink, WarpSum(e));
      weight[q][lane] = e;
#pragma unroll
      for (int i = 0; i < N; ++i) values[q][i] = __fmul_rn(values[q][i], shrink);
      highest[q] = now_highest;
    }
    __syncwarp();
    const int tile = min(kWarp, count - begin);
    if (whole) {
      AddValues<true>(at.value, weight, queries, head_size, tile, values);
    } else {
      AddValues<false>(at.value, weight, queries, head_size, tile, values);
    }
    __syncwarp();  // before the weights of the next keys
  }

#pragma unroll
  for (int q = 0; q < Q; ++q) {
    if (q >= queries) continue;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (first + i >= head_size) continue;
      rows.y[q * rows.y_stride + first + i] =
          FromFloat<T>(count > 0 ? values[q][i] / sum[q] : 0.0f);
    }
  }
}

// Max rows of a warp. Wide heads have fewer, because of shared memory.
template <int N>
constexpr int kAttentionGroup = N <= 4 ? 8 : 4;

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
