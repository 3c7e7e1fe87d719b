#include "model/ops/cuda/attention.cuh"
#include "model/ops/same_source.h"

namespace linnet::ops {
namespace {

// From this number of rows on a warp computes a head of several neighbouring rows with the same
// source, so that its keys and values are read once. Fewer rows do not fill the device: there each
// row has its own warps.
constexpr int64_t kManyRows = 32;

// True if the row has the source of the one before it. Idle rows are alone.
__device__ __forceinline__ bool ContinuesSource(const SourceAttentionParams& p, int64_t row) {
  return 0 < row && row < p.rows && p.lengths[row] > 0 && HaveSameSource(p, row - 1, row);
}

// The number of rows that a warp of this row computes: the row and those after it that have its
// source; 0 if a warp of an earlier row computes it. A source's rows are divided into groups of
// kAttentionGroup from its first row on.
template <int N>
__device__ __forceinline__ int RowsOfWarp(const SourceAttentionParams& p, int64_t row) {
  const int lane = threadIdx.x % kWarp;
  int before = 0;  // rows of the same source before this one
  for (unsigned same = kWholeWarp; same == kWholeWarp;) {
    same = __ballot_sync(kWholeWarp, ContinuesSource(p, row - before - lane));
    before += same == kWholeWarp ? kWarp : __ffs(~same) - 1;
  }
  if (before % kAttentionGroup<N> != 0) return 0;
  const unsigned same = __ballot_sync(kWholeWarp, ContinuesSource(p, row + 1 + lane));
  return min(kAttentionGroup<N>, same == kWholeWarp ? kWarp : __ffs(~same));
}

template <class T, int N, bool kGroups>
__global__ void __launch_bounds__(kAttentionThreads) Attend(SourceAttentionParams p, float scale) {
  const int64_t head = HeadOfWarp();
  if (head >= p.rows * p.heads) return;
  const int64_t row = head / p.heads;
  const int head_size = p.size / p.heads;
  const int64_t channel = head % p.heads * head_size;
  const int length = p.lengths[row];
  assert(0 <= length && length <= p.row_blocks * p.block_tokens);
  const int rows = kGroups ? RowsOfWarp<N>(p, row) : 1;
  if (rows == 0) return;
  const auto find = [&](int s) {
    const int64_t block = p.blocks[row * p.row_blocks + s / p.block_tokens];
    assert(0 <= block && block < p.cache_blocks);
    const T* key = static_cast<const T*>(p.encoder_cache) +
                   (block * p.block_tokens + s % p.block_tokens) * 2 * p.size + channel;
    return KeyValue<T>{key, key + p.size};
  };
  const int64_t own = row * p.size + channel;
  AttendHead<N, kGroups ? kAttentionGroup<N> : 1>(
      QueryRows<T>{static_cast<const T*>(p.query) + own, p.size, static_cast<T*>(p.y) + own, p.size,
                   rows},
      head_size, scale, length, find);
}

}  // namespace

void SourceAttentionCuda(const SourceAttentionParams& p, void* stream) {
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_size));
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const int64_t blocks = AttentionBlocks(p.rows, p.heads);
  DispatchType(p.type, [&](auto element) {
    DispatchHeadSize(head_size, [&](auto channels) {
      using T = decltype(element);
      constexpr int N = decltype(channels)::value;
      if (p.rows >= kManyRows) {
        Attend<T, N, true><<<blocks, kAttentionThreads, 0, cuda_stream>>>(p, scale);
      } else {
        Attend<T, N, false><<<blocks, kAttentionThreads, 0, cuda_stream>>>(p, scale);
      }
    });
  });
}

}  // namespace linnet::ops
