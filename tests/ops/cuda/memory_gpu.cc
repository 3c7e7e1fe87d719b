#include <cuda_runtime.h>
#include <torch/csrc/stable/c/shim.h>

#include <stdexcept>
#include <string>

#include "model/ops/cpu/isa.h"
#include "tests/ops/cuda/memory.h"

// The CPU's kernels run on torch's threads (parallel.h). This binary does not link torch, and its
// arrays are small, so one thread runs everything.
extern "C" AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t, ParallelFunc body,
                                             void* context) {
  body(begin, end, context);
  return 0;
}

namespace linnet::ops {

Isa HostIsa() { return Isa::kBaseline; }  // asked of torch otherwise

namespace {

void Check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(error));
}

}  // namespace

KernelMemory::~KernelMemory() {
  for (const Block& block : blocks_) cudaFree(block.device);
}

void* KernelMemory::Give(void* host, int64_t bytes) {
  void* device = nullptr;
  Check(cudaMalloc(&device, bytes), "cudaMalloc");
  blocks_.push_back({host, device, bytes});
  Check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "a copy to the GPU");
  return device;
}

void KernelMemory::TakeBack() {
  Check(cudaGetLastError(), "the launch");
  Check(cudaDeviceSynchronize(), "the kernel");
  for (const Block& block : blocks_) {
    Check(cudaMemcpy(block.host, block.device, block.bytes, cudaMemcpyDeviceToHost),
          "a copy from the GPU");
    Check(cudaFree(block.device), "cudaFree");
  }
  blocks_.clear();
}

}  // namespace linnet::ops
