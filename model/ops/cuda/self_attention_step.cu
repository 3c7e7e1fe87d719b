#include "model/ops/cuda/attention.cuh"

namespace linnet::ops {
namespace {

// One warp computes one head of one row, and writes that head's part of the row's cache entry. None
// reads the entry in this step: all read it from `key` and `value`.
template <class T, int N>
__global__ void __launch_bounds__(kAttentionThreads)
    Attend(SelfAttentionStepParams p, float scale) {
  const int64_t task = HeadOfWarp();
  if (task >= p.rows * p.heads) return;
  const int64_t row = task / p.heads;
  const int head_size = p.size / p.heads;
  const int head = task % p.heads;
  const int lane = threadIdx.x % kWarp;
  const int64_t own = row * p.size + head * head_size;
  T* y = static_cast<T*>(p.y) + own;
  if (IsIdle(p.cache, row)) {
    for (int c = lane; c < head_size; c += kWarp) y[c] = FromFloat<T>(0.0f);
    return;
  }

  const int64_t neighbours = p.neighbour_heads / 2;
  const int first_head = max(int64_t{0}, head - neighbours);
  const int last_head = min(p.heads - 1, head + neighbours);
  const int steps = min(p.cache.depth, p.cache.positions[row] + int64_t{1});
  const T* keys = static_cast<const T*>(p.key) + row * p.size;
  const T* values = static_cast<const T*>(p.value) + row * p.size;
  T* cache = static_cast<T*>(p.cache.data);
  const auto find = [&](int i) {
    const int64_t channel = (first_head + i / steps) * int64_t(head_size);
    const int j = i % steps;
    if (j == 0) return KeyValue<T>{keys + channel, values + channel};
    const T* key = cache + EntryOffset(p.cache, row, j) + channel;
    return KeyValue<T>{key, key + p.size};
  };
  const QueryRows<T> query = {static_cast<const T*>(p.query) + own, /*query_stride=*/0, y,
                              /*y_stride=*/0, /*count=*/1};
  AttendHead<N, 1>(query, head_size, scale, steps * (last_head - first_head + 1), find);

  T* entry = cache + EntryOffset(p.cache, row, 0);
  for (int c = lane; c < head_size; c += kWarp) {
    const int64_t channel = head * int64_t(head_size) + c;
    entry[channel] = keys[channel];
    entry[p.size + channel] = values[channel];
  }
}

}  // namespace

void SelfAttentionStepCuda(const SelfAttentionStepParams& p, void* stream) {
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_size));
  DispatchType(p.type, [&](auto element) {
    DispatchHeadSize(head_size, [&](auto channels) {
      Attend<decltype(element), decltype(channels)::value>
          <<<AttentionBlocks(p.rows, p.heads), kAttentionThreads, 0,
             static_cast<cudaStream_t>(stream)>>>(p, scale);
    });
  });
}

}  // namespace linnet::ops
