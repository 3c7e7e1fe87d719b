#include "model/ops/cuda/attention.cuh"

namespace linnet::ops {
namespace {

// One warp computes a head of up to kAttentionGroup neighbouring positions of a row, which attend
// to the same keys.
template <class T, int N>
__global__ void __launch_bounds__(kAttentionThreads)
    Attend(SelfAttentionParams p, int groups, float scale) {
  constexpr int Q = kAttentionGroup<N>;
  const int64_t task = HeadOfWarp();
  if (task >= p.batch * groups * p.heads) return;
  const int head_size = p.size / p.heads;
  const int64_t channel = task % p.heads * head_size;
  const int64_t b = task / p.heads / groups;
  const int first = task / p.heads % groups * Q;
  const int64_t start = FirstPosition(p.starts, b), length = p.lengths[b];
  AssertSequence(p, b);
  const int positions = min(Q, int(p.time) - first);
  const int filled = max(int64_t{0}, min(int64_t{positions}, length - start - first));
  T* y = static_cast<T*>(p.y) + (b * p.time + first) * p.size + channel;
  for (int i = filled; i < positions; ++i) {
    for (int c = threadIdx.x % kWarp; c < head_size; c += kWarp)
      y[i * p.size + c] = FromFloat<T>(0.0f);
  }
  if (filled == 0) return;
  const T* sequence =
      static_cast<const T*>(p.query_key_value) + (b * p.time - start) * 3 * p.size + channel;
  const auto find = [&](int s) {
    const T* key = sequence + (3 * int64_t{s} + 1) * p.size;
    return KeyValue<T>{key, key + p.size};
  };
  const QueryRows<T> rows = {sequence + (start + first) * 3 * p.size, 3 * p.size, y, p.size,
                             filled};
  AttendHead<N, Q>(rows, head_size, scale, length, find);
}

}  // namespace

void SelfAttentionCuda(const SelfAttentionParams& p, void* stream) {
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_size));
  DispatchType(p.type, [&](auto element) {
    DispatchHeadSize(head_size, [&](auto channels) {
      constexpr int N = decltype(channels)::value;
      const int64_t groups = DivideUp(p.time, kAttentionGroup<N>);
      Attend<decltype(element), N><<<AttentionBlocks(p.batch * groups, p.heads), kAttentionThreads,
                                     0, static_cast<cudaStream_t>(stream)>>>(p, groups, scale);
    });
  });
}

}  // namespace linnet::ops
