// Times what bounds a decoder step of few rows on a GPU of compute capability 9.0: kernels of a
// graph, barriers of a grid and of a cluster, and reading weights with few or all multiprocessors.
// Prints a JSON object for each; one that fails has the error.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace cg = cooperative_groups;

constexpr int kChain = 100;      // kernels of a graph
constexpr int kBarriers = 1000;  // of a launch
constexpr int kClusterBlocks = 16;
constexpr int kThreads = 512;
constexpr int kRuns = 20;
constexpr size_t kRotatedBytes = size_t{1} << 28;  // several times the cache of an H200

void Check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

__global__ void Empty(int* never) {
  if (never != nullptr) *never = 1;
}

__global__ void EmptyDependent(int* never) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  if (never != nullptr) *never = 1;
}

__global__ void GridBarriers() {
  for (int i = 0; i < kBarriers; ++i) cg::this_grid().sync();
}

// A barrier of one counter that only grows.
__global__ void CounterBarriers(unsigned* counter) {
  for (unsigned i = 1; i <= kBarriers; ++i) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(counter, 1);
      while (*static_cast<volatile unsigned*>(counter) < i * gridDim.x) {
      }
      __threadfence();
    }
    __syncthreads();
  }
}

__global__ void ClusterBarriers() {
#if __CUDA_ARCH__ >= 900
  for (int i = 0; i < kBarriers; ++i) cg::this_cluster().sync();
#endif
}

__global__ void __launch_bounds__(kThreads) Read(const uint4* data, size_t count, unsigned* never) {
  constexpr int kLoads = 8;
  const size_t stride = size_t{gridDim.x} * kThreads;
  unsigned bits = 0;
  for (size_t at = size_t{blockIdx.x} * kThreads + threadIdx.x; at < count; at += kLoads * stride) {
    uint4 loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      loaded[i] = at + i * stride < count ? __ldcg(data + at + i * stride) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) bits |= loaded[i].x | loaded[i].y | loaded[i].z | loaded[i].w;
  }
  if (bits != 0) *never = bits;  // the data are zeros
}

// The median of some runs in us.
double MedianUs(const std::function<void(cudaStream_t)>& run) {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  Check(cudaStreamCreate(&stream));
  Check(cudaEventCreate(&begin));
  Check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < kRuns + 3; ++i) {
    float ms = 0;
    Check(cudaEventRecord(begin, stream));
    run(stream);
    Check(cudaEventRecord(end, stream));
    Check(cudaEventSynchronize(end));
    Check(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 3) times.push_back(ms);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return 1e3 * times[kRuns / 2];
}

template <class... Arguments>
void Launch(void (*kernel)(Arguments...), int blocks, int threads, cudaStream_t stream,
            cudaLaunchAttribute attribute, Arguments... arguments) {
  cudaLaunchConfig_t launch = {};
  launch.gridDim = blocks;
  launch.blockDim = threads;
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  Check(cudaLaunchKernelEx(&launch, kernel, arguments...));
}

double ChainUs(bool dependent) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  Check(cudaStreamCreate(&stream));
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kChain; ++i) {
    if (dependent) {
      cudaLaunchAttribute early = {};
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
      Launch<int*>(EmptyDependent, 1, 32, stream, early, nullptr);
    } else {
      Empty<<<1, 32, 0, stream>>>(nullptr);
    }
  }
  Check(cudaStreamEndCapture(stream, &graph));
  Check(cudaGraphInstantiate(&ready, graph, 0));
  return MedianUs([&](cudaStream_t on) { Check(cudaGraphLaunch(ready, on)); }) / kChain;
}

double GridBarrierUs(int blocks) {
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  return MedianUs([&](cudaStream_t on) { Launch(GridBarriers, blocks, 128, on, cooperative); }) /
         kBarriers;
}

double CounterBarrierUs(int blocks) {
  unsigned* counter;
  Check(cudaMalloc(&counter, sizeof(unsigned)));
  cudaLaunchAttribute cooperative = {};  // all blocks run at once, or the launch fails
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  return MedianUs([&](cudaStream_t on) {
           Check(cudaMemsetAsync(counter, 0, sizeof(unsigned), on));
           Launch(CounterBarriers, blocks, 128, on, cooperative, counter);
         }) /
         kBarriers;
}

double ClusterBarrierUs() {
  Check(cudaFuncSetAttribute(ClusterBarriers, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kClusterBlocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  return MedianUs(
             [&](cudaStream_t on) { Launch(ClusterBarriers, kClusterBlocks, 128, on, cluster); }) /
         kBarriers;
}

// Reads buffers in turn, so that none is in the cache; or one buffer again and again.
double ReadUs(size_t bytes, int blocks, bool cached) {
  const size_t buffers = cached ? 1 : std::max<size_t>(2, kRotatedBytes / bytes);
  char* data;
  Check(cudaMalloc(&data, buffers * bytes + sizeof(unsigned)));
  Check(cudaMemset(data, 0, buffers * bytes));
  size_t next = 0;
  const double us = MedianUs([&](cudaStream_t on) {
    const auto* from = reinterpret_cast<const uint4*>(data + next++ % buffers * bytes);
    Read<<<blocks, kThreads, 0, on>>>(from, bytes / sizeof(uint4),
                                      reinterpret_cast<unsigned*>(data + buffers * bytes));
  });
  Check(cudaFree(data));
  return us;
}

void Print(const std::string& name, const std::function<double()>& us, double bytes = 0) {
  try {
    const double found = us();
    std::printf("{\"benchmark\": \"%s\", \"us\": %.3f", name.c_str(), found);
    if (bytes > 0) std::printf(", \"GB/s\": %.1f", bytes / found / 1e3);
    std::printf("}\n");
  } catch (const std::runtime_error& error) {
    std::printf("{\"benchmark\": \"%s\", \"error\": \"%s\"}\n", name.c_str(), error.what());
  }
  std::fflush(stdout);
}

}  // namespace

int main() {
  int multiprocessors = 0;
  if (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0) != cudaSuccess) {
    std::fprintf(stderr, "error: there is no GPU\n");
    return 1;
  }
  Print("kernel of a graph", [] { return ChainUs(/*dependent=*/false); });
  Print("kernel of a graph, dependent launch", [] { return ChainUs(/*dependent=*/true); });
  Print("grid barrier", [&] { return GridBarrierUs(multiprocessors); });
  Print("grid barrier with a counter", [&] { return CounterBarrierUs(multiprocessors); });
  Print("cluster barrier, 16 blocks", [] { return ClusterBarrierUs(); });
  for (const size_t megabytes : {42, 21}) {
    for (const int blocks : {kClusterBlocks, multiprocessors}) {
      for (const bool cached : {false, true}) {
        const std::string name = "read " + std::to_string(megabytes) + " MB with " +
                                 std::to_string(blocks) + " multiprocessors" +
                                 (cached ? ", from the cache" : "");
        const size_t bytes = megabytes * 1'000'000;
        Print(
            name, [&] { return ReadUs(bytes, blocks, cached); }, bytes);
      }
    }
  }
}
