#include "model/ops/cuda/attention.cuh"

namespace linnet::ops {
namespace {

// One block computes one head of one row.
template <class T, int N>
__global__ void __launch_bounds__(kAttentionThreads) Attend(SourceAttentionParams p, float scale) {
  const int64_t row = blockIdx.x / p.heads;
  const int head_size = p.size / p.heads;
  const int64_t channel = blockIdx.x % p.heads * head_size;
  const int length = p.lengths[row];
  assert(0 <= length && length <= p.row_blocks * p.block_tokens);
  const auto find = [&](int s) {
    const int64_t block = p.blocks[row * p.row_blocks + s / p.block_tokens];
    assert(0 <= block && block < p.cache_blocks);
    const T* key = static_cast<const T*>(p.encoder_cache) +
                   (block * p.block_tokens + s % p.block_tokens) * 2 * p.size + channel;
    return KeyValue<T>{key, key + p.size};
  };
  const int64_t own = row * p.size + channel;
  AttendHead<N>(static_cast<const T*>(p.query) + own, head_size, scale, length, find,
                static_cast<T*>(p.y) + own);
}

}  // namespace

void SourceAttentionCuda(const SourceAttentionParams& p, void* stream) {
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_size));
  DispatchType(p.type, [&](auto element) {
    DispatchHeadSize(head_size, [&](auto channels) {
      Attend<decltype(element), decltype(channels)::value>
          <<<p.rows * p.heads, kAttentionThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, scale);
    });
  });
}

}  // namespace linnet::ops
