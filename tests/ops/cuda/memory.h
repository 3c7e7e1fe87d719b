#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/cuda/array.h"

namespace linnet::ops {

// Memory that kernels read and write during one launch.
//
// Emulated kernels use the host's memory directly (memory_emulated.cc). On a GPU every array
// is copied to an allocation of exactly its size, so that compute-sanitizer finds accesses beyond
// it (memory_gpu.cc).
class KernelMemory {
 public:
  KernelMemory() = default;
  ~KernelMemory();
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  template <class T>
  T* Give(std::vector<T>& values) {
    return static_cast<T*>(Give(values.data(), std::ssize(values) * int64_t{sizeof(T)}));
  }
  void* Give(Array& array) {
    return Give(array.data(), array.size() * (array.wide() ? sizeof(float) : sizeof(uint16_t)));
  }

  // Waits for the kernel and copies all arrays back. Throws std::runtime_error if the kernel
  // failed.
  void TakeBack();

 private:
  struct Block {
    void* host;
    void* device;
    int64_t bytes;
  };
  void* Give(void* host, int64_t bytes);

  std::vector<Block> blocks_;
};

}  // namespace linnet::ops
