#include "model/ops/cuda/convolve_state.cuh"

namespace linnet::ops {
namespace {

// Convolution and the update of the state are one launch (convolve_state.cuh).
template <class T, int K, int N>
__global__ void __launch_bounds__(kStepThreads) ConvolveStep(DepthwiseConvStepParams p) {
  __shared__ int64_t offsets[K];
  const int64_t row = blockIdx.x;
  const int64_t c = (int64_t(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  const int64_t element = row * p.channels + c;
  if (IsIdle(p.state, row)) {
    if (c < p.channels) WriteZeros<T, N>(p.y, element);
    return;
  }
  FindInputs<K>(p.state, row, p.dilation, offsets);
  __syncthreads();
  if (c >= p.channels) return;
  const T* taps = static_cast<const T*>(p.taps) + c;
  ConvolveState<T, K, N>(p.x, p.state, offsets, p.y, element, c, [&](int i) {
    return *reinterpret_cast<const Pack<T, N>*>(taps + (K - 1 - i) * p.channels);
  });
}

// For any width: one thread per output.
template <class T>
__global__ void __launch_bounds__(kStepThreads) ConvolveStepAny(DepthwiseConvStepParams p) {
  const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= p.rows * p.channels) return;
  const int64_t row = element / p.channels;
  const int64_t c = element % p.channels;
  if (IsIdle(p.state, row)) {
    static_cast<T*>(p.y)[element] = FromFloat<T>(0.0f);
    return;
  }
  const T* taps = static_cast<const T*>(p.taps) + c;
  ConvolveElement<T>(p.x, p.state, p.y, row, element, c, p.width, p.dilation,
                     [&](int64_t i) { return ToFloat(taps[(p.width - 1 - i) * p.channels]); });
}

template <class T, int K, int N>
void Launch(const DepthwiseConvStepParams& p, cudaStream_t stream) {
  const StepShape shape = MakeStepShape(p.rows, p.channels, N);
  ConvolveStep<T, K, N><<<shape.grid, shape.threads, 0, stream>>>(p);
}

}  // namespace

void DepthwiseConvStepCuda(const DepthwiseConvStepParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    DispatchWidth(p.width, [&](auto width) {
      constexpr int K = decltype(width)::value;
      if constexpr (K > 0) {
        constexpr int kMany = kStepPack<T>;
        if (p.channels % kMany == 0 && CanPack<T>({p.x, p.taps, p.state.data, p.y})) {
          Launch<T, K, kMany>(p, cuda_stream);
        } else {
          Launch<T, K, 1>(p, cuda_stream);
        }
      } else {
        ConvolveStepAny<T>
            <<<DivideUp(p.rows * p.channels, kStepThreads), kStepThreads, 0, cuda_stream>>>(p);
      }
    });
  });
}

}  // namespace linnet::ops
