#include "model/ops/cuda/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kSsruThreads = 256;

// One thread per channel of a row. A thread reads and writes only its own channel, in two
// different entries, so threads need no synchronisation.
template <class T>
__global__ void __launch_bounds__(kSsruThreads) RecurrentStep(SsruStepParams p) {
  const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= p.rows * p.channels) return;
  const int64_t row = element / p.channels;
  const int64_t c = element % p.channels;
  T* y = static_cast<T*>(p.y);
  if (IsIdle(p.state, row)) {
    y[element] = FromFloat<T>(0.0f);
    return;
  }
  const T* projected = static_cast<const T*>(p.projected) + row * 2 * p.channels + c;
  float* state = static_cast<float*>(p.state.data) + c;
  const float z = ToFloat(projected[0]);
  const float f = 1.0f / (1.0f + __expf(-ToFloat(projected[p.channels])));
  float after = (1.0f - f) * z;
  if (p.state.positions[row] > 0) after += f * state[EntryOffset(p.state, row, 1)];
  state[EntryOffset(p.state, row, 0)] = after;
  y[element] = FromFloat<T>(after < 0.0f ? 0.0f : after);  // keeps NaN
}

}  // namespace

void SsruStepCuda(const SsruStepParams& p, void* stream) {
  DispatchType(p.type, [&](auto element) {
    RecurrentStep<decltype(element)><<<DivideUp(p.rows * p.channels, kSsruThreads), kSsruThreads, 0,
                                       static_cast<cudaStream_t>(stream)>>>(p);
  });
}

}  // namespace linnet::ops
