#include "model/ops/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kWarps = 8;

// One block: one head of one row. Each warp takes every eighth token, with the head's channels
// spread over its lanes (N each), and keeps a running softmax: the highest score so far, the sum of
// exponentials relative to it, and the weighted sum of values. The warps' parts are joined at the
// end.
template <class T, int N>
__global__ void __launch_bounds__(kWarps* kWarp) Attend(SourceAttentionParams p, float scale) {
  __shared__ float highest_of[kWarps], sum_of[kWarps];
  __shared__ float values_of[kWarps][N * kWarp];
  const int64_t row = blockIdx.x / p.heads;
  const int head_size = p.size / p.heads;
  const int64_t channel = blockIdx.x % p.heads * head_size;
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const int length = p.lengths[row];
  assert(0 <= length && length <= p.row_blocks * p.block_tokens);

  const T* own_query = static_cast<const T*>(p.query) + row * p.size + channel;
  float query[N], values[N] = {};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int c = i * kWarp + lane;
    query[i] = c < head_size ? ToFloat(own_query[c]) * scale : 0.0f;
  }
  float highest = -INFINITY, sum = 0.0f;
#pragma unroll 4
  for (int s = warp; s < length; s += kWarps) {
    const int64_t block = p.blocks[row * p.row_blocks + s / p.block_tokens];
    assert(0 <= block && block < p.memory_blocks);
    const T* key = static_cast<const T*>(p.memory) +
                   (block * p.block_tokens + s % p.block_tokens) * 2 * p.size + channel;
    const T* value = key + p.size;
    float score = 0.0f, own_values[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int c = i * kWarp + lane;
      score += c < head_size ? query[i] * ToFloat(key[c]) : 0.0f;
      own_values[i] = c < head_size ? ToFloat(value[c]) : 0.0f;
    }
    score = WarpSum(score);
    const float now_highest = fmaxf(highest, score);
    const float shrink = __expf(highest - now_highest);  // 0 at the first token
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
  for (int i = 0; i < N; ++i) values_of[warp][i * kWarp + lane] = values[i];
  __syncthreads();
  T* y = static_cast<T*>(p.y) + row * p.size + channel;
  for (int c = threadIdx.x; c < head_size; c += kWarps * kWarp) {
    float top = -INFINITY, total = 0.0f, value = 0.0f;
    for (int w = 0; w < kWarps; ++w) top = fmaxf(top, highest_of[w]);
    for (int w = 0; w < min(kWarps, length); ++w) {  // the others saw no token
      const float part = __expf(highest_of[w] - top);
      total += sum_of[w] * part;
      value += values_of[w][c] * part;
    }
    y[c] = FromFloat<T>(length > 0 ? value / total : 0.0f);
  }
}

}  // namespace

void SourceAttentionCuda(const SourceAttentionParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_size));
  const int64_t grid = p.rows * p.heads;
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    if (head_size <= 1 * kWarp) {
      Attend<T, 1><<<grid, kWarps * kWarp, 0, cuda_stream>>>(p, scale);
    } else if (head_size <= 2 * kWarp) {
      Attend<T, 2><<<grid, kWarps * kWarp, 0, cuda_stream>>>(p, scale);
    } else if (head_size <= 4 * kWarp) {
      Attend<T, 4><<<grid, kWarps * kWarp, 0, cuda_stream>>>(p, scale);
    } else {  // source_attention.cc admits at most kMaxCudaHeadSize
      static_assert(kMaxCudaHeadSize == 8 * kWarp);
      Attend<T, 8><<<grid, kWarps * kWarp, 0, cuda_stream>>>(p, scale);
    }
  });
}

}  // namespace linnet::ops
