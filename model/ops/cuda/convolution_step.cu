#include <algorithm>

#include "model/ops/cuda/convolve_state.cuh"

namespace linnet::ops {
namespace {

constexpr int kMaxWidth = 31;  // max width of the kernels with a fixed width

// Softmax, convolution and the update of the state are one launch (convolve_state.cuh).
template <class T, int K, int N>
__global__ void __launch_bounds__(kStepThreads) ConvolveStep(ConvolutionStepParams p) {
  extern __shared__ float taps[];  // [heads of this tile, K], by k
  __shared__ int64_t offsets[K];
  const int64_t row = blockIdx.x;
  const int64_t tile = int64_t(blockIdx.y) * blockDim.x * N;
  const int64_t c = tile + int64_t(threadIdx.x) * N;
  const int64_t element = row * p.channels + c;
  if (IsIdle(p.state, row)) {
    if (c < p.channels) WriteZeros<T, N>(p.y, element);
    return;
  }

  const int64_t head_channels = p.channels / p.heads;
  const int64_t first_head = tile / head_channels;
  const int64_t last_channel = min(p.channels, tile + int64_t(blockDim.x) * N) - 1;
  const int tile_heads = last_channel / head_channels - first_head + 1;
  const T* weight =
      static_cast<const T*>(p.weight) + ((p.dynamic ? row * p.heads : 0) + first_head) * K;
  for (int i = threadIdx.x / kWarp; i < tile_heads; i += blockDim.x / kWarp) {
    WarpSoftmax(weight + i * K, K, taps + i * K);
  }
  FindInputs<K>(p.state, row, /*dilation=*/1, offsets);
  __syncthreads();
  if (c >= p.channels) return;
  const float* own_taps = taps + (c / head_channels - first_head) * K;
  ConvolveState<T, K, N>(p.x, p.state, offsets, p.y, element, c,
                         [&](int i) { return own_taps[K - 1 - i]; });
}

// For any width and number of heads: one thread per output, no shared memory, taps computed per
// thread.
template <class T>
__global__ void __launch_bounds__(kStepThreads) ConvolveStepAny(ConvolutionStepParams p) {
  const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= p.rows * p.channels) return;
  const int64_t row = element / p.channels;
  const int64_t c = element % p.channels;
  if (IsIdle(p.state, row)) {
    static_cast<T*>(p.y)[element] = FromFloat<T>(0.0f);
    return;
  }
  const int64_t head = c / (p.channels / p.heads);
  const T* weight =
      static_cast<const T*>(p.weight) + ((p.dynamic ? row * p.heads : 0) + head) * p.width;
  const SoftmaxScale softmax(weight, p.width);
  ConvolveElement<T>(p.x, p.state, p.y, row, element, c, p.width, /*dilation=*/int64_t{1},
                     [&](int64_t i) { return softmax.Tap(ToFloat(weight[p.width - 1 - i])); });
}

// Returns false if the taps of a block do not fit into shared memory.
template <class T, int K, int N>
bool Launch(const ConvolutionStepParams& p, cudaStream_t stream) {
  const StepShape shape = MakeStepShape(p.rows, p.channels, N);
  const int64_t head_channels = p.channels / p.heads;
  const int64_t tile_heads = std::min(p.heads, (shape.threads * N - 1) / head_channels + 2);
  const int64_t shared_bytes = tile_heads * K * sizeof(float);
  if (shared_bytes + kMaxWidth * sizeof(int64_t) > kCudaSharedBytes) return false;
  ConvolveStep<T, K, N><<<shape.grid, shape.threads, shared_bytes, stream>>>(p);
  return true;
}

}  // namespace

void ConvolutionStepCuda(const ConvolutionStepParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    DispatchWidth(p.width, [&](auto width) {
      constexpr int K = decltype(width)::value;
      if constexpr (K > 0) {
        constexpr int kMany = kStepPack<T>;
        const bool packs =
            p.channels / p.heads % kMany == 0 && CanPack<T>({p.x, p.y, p.state.data});
        if (packs ? Launch<T, K, kMany>(p, cuda_stream) : Launch<T, K, 1>(p, cuda_stream)) {
          return;
        }
      }
      ConvolveStepAny<T>
          <<<DivideUp(p.rows * p.channels, kStepThreads), kStepThreads, 0, cuda_stream>>>(p);
    });
  });
}

}  // namespace linnet::ops
