#include <algorithm>

#include "model/ops/cuda/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kEmbedThreads = 256;

// One block computes one row.
template <class T>
__global__ void __launch_bounds__(kEmbedThreads) Embed(EmbedParams p) {
  const int64_t row = blockIdx.x;
  const int64_t token = p.tokens[row];
  const int64_t position = p.positions[row] + p.first_position;
  assert(0 <= token && token < p.vocabulary);
  assert(p.position_table == nullptr || (0 <= position && position < p.max_positions));
  const T* own = static_cast<const T*>(p.table) + token * p.channels;
  const T* at = static_cast<const T*>(p.position_table) + position * p.channels;
  const int half = p.channels / 2;
  for (int c = threadIdx.x; c < p.channels; c += blockDim.x) {
    float sum = ToFloat(own[c]) * p.scale;
    if (p.position_table != nullptr) {
      sum += ToFloat(at[c]);
    } else if (p.sinusoids) {
      const int i = c < half ? c : c - half;
      // Not the fast sine: angles grow with the position.
      const float angle = float(position) * expf(float(i) * p.log_frequency_step);
      sum += c < half ? sinf(angle) : cosf(angle);
    }
    static_cast<T*>(p.y)[row * p.channels + c] = FromFloat<T>(sum);
  }
}

}  // namespace

void EmbedCuda(const EmbedParams& p, void* stream) {
  const int64_t threads = std::min<int64_t>(kEmbedThreads, DivideUp(p.channels, kWarp) * kWarp);
  DispatchType(p.type, [&](auto element) {
    Embed<decltype(element)><<<p.rows, threads, 0, static_cast<cudaStream_t>(stream)>>>(p);
  });
}

}  // namespace linnet::ops
