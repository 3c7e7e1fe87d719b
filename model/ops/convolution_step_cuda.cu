#include <algorithm>

#include "model/ops/device.cuh"

namespace linnet::ops {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxWidth = 31;  // of the kernels with a fixed width

// One block: blockDim.x * N channels of one row. Softmax, convolution and the window's update are
// one launch. All other lanes' inputs that a row reads are of earlier steps, and its own input of
// this step comes from x, so blocks need not wait for each other.
//
// All K loads of a thread are independent and in flight together: at few rows that is what counts.
template <class T, int K, int N>
__global__ void __launch_bounds__(kMaxThreads) ConvolveStep(ConvolutionStepParams p) {
  extern __shared__ float taps[];  // [heads of this tile, K], by k
  __shared__ int64_t offsets[K];   // [j], into window; -1 where nothing was yet
  const int64_t row = blockIdx.x;
  const int64_t tile = int64_t(blockIdx.y) * blockDim.x * N;
  const int64_t c = tile + int64_t(threadIdx.x) * N;
  const int64_t element = row * p.channels + c;
  Pack<T, N> out;
  if (IsIdle(p.window, row)) {
    if (c >= p.channels) return;
#pragma unroll
    for (int i = 0; i < N; ++i) out.at[i] = FromFloat<T>(0.0f);
    reinterpret_cast<Pack<T, N>*>(p.y)[element / N] = out;
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
  for (int j = threadIdx.x; j < K; j += blockDim.x) {
    offsets[j] = j == 0 || j <= p.window.positions[row] ? EntryOffset(p.window, row, j) : -1;
  }
  __syncthreads();
  if (c >= p.channels) return;

  const Pack<T, N> x = reinterpret_cast<const Pack<T, N>*>(p.x)[element / N];
  T* window = static_cast<T*>(p.window.data) + c;
  Pack<T, N> inputs[K];
#pragma unroll
  for (int j = 1; j < K; ++j) {
    if (offsets[j] >= 0) inputs[j] = *reinterpret_cast<const Pack<T, N>*>(window + offsets[j]);
  }
  inputs[0] = x;
  const float* own_taps = taps + (c / head_channels - first_head) * K;
  float sums[N] = {};
#pragma unroll
  for (int j = K - 1; j >= 0; --j) {
    if (offsets[j] < 0) continue;
    const float tap = own_taps[K - 1 - j];
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] += tap * ToFloat(inputs[j].at[i]);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) out.at[i] = FromFloat<T>(sums[i]);
  reinterpret_cast<Pack<T, N>*>(p.y)[element / N] = out;
  *reinterpret_cast<Pack<T, N>*>(window + offsets[0]) = x;
}

// Any width and any number of heads, one thread per output: no shared memory, taps computed anew.
template <class T>
__global__ void __launch_bounds__(kMaxThreads) ConvolveStepAny(ConvolutionStepParams p) {
  const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= p.rows * p.channels) return;
  const int64_t row = element / p.channels;
  const int64_t c = element % p.channels;
  T* y = static_cast<T*>(p.y);
  if (IsIdle(p.window, row)) {
    y[element] = FromFloat<T>(0.0f);
    return;
  }
  const int64_t head = c / (p.channels / p.heads);
  const T* weight =
      static_cast<const T*>(p.weight) + ((p.dynamic ? row * p.heads : 0) + head) * p.width;
  const SoftmaxScale softmax(weight, p.width);
  const T x = static_cast<const T*>(p.x)[element];
  T* window = static_cast<T*>(p.window.data) + c;
  const int64_t oldest = min(p.width - 1, int64_t(p.window.positions[row]));
  float sum = 0.0f;
  for (int64_t j = oldest; j > 0; --j) {
    sum += softmax.Tap(ToFloat(weight[p.width - 1 - j])) *
           ToFloat(window[EntryOffset(p.window, row, j)]);
  }
  sum += softmax.Tap(ToFloat(weight[p.width - 1])) * ToFloat(x);
  y[element] = FromFloat<T>(sum);
  window[EntryOffset(p.window, row, 0)] = x;
}

template <class T>
bool Aligned(const ConvolutionStepParams& p, int64_t elements) {
  const auto bytes = elements * sizeof(T);
  const auto fits = [&](const void* at) { return reinterpret_cast<uintptr_t>(at) % bytes == 0; };
  return p.channels % elements == 0 && (p.channels / p.heads) % elements == 0 && fits(p.x) &&
         fits(p.y) && fits(p.window.data);
}

// False if the taps of a block would not fit into shared memory.
template <class T, int K, int N>
bool Launch(const ConvolutionStepParams& p, cudaStream_t stream) {
  const int64_t threads =
      std::min<int64_t>(kMaxThreads, DivideUp(DivideUp(p.channels, N), kWarp) * kWarp);
  const int64_t head_channels = p.channels / p.heads;
  const int64_t tile_heads = std::min(p.heads, (threads * N - 1) / head_channels + 2);
  const int64_t shared_bytes = tile_heads * K * sizeof(float);
  if (shared_bytes + kMaxWidth * sizeof(int64_t) > kSharedBytes) return false;
  const dim3 grid(p.rows, DivideUp(p.channels, threads * N));
  ConvolveStep<T, K, N><<<grid, threads, shared_bytes, stream>>>(p);
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
        constexpr int kMany = 8 / sizeof(T);  // 8 bytes per thread: 256 bytes per warp and load
        if (Aligned<T>(p, kMany) ? Launch<T, K, kMany>(p, cuda_stream)
                                 : Launch<T, K, 1>(p, cuda_stream)) {
          return;
        }
      }
      ConvolveStepAny<T>
          <<<DivideUp(p.rows * p.channels, kMaxThreads), kMaxThreads, 0, cuda_stream>>>(p);
    });
  });
}

}  // namespace linnet::ops
