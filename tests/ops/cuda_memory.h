#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/cuda_array.h"

namespace linnet::ops {

// Memory that kernels may read and write, for the length of one launch.
//
// Emulated kernels run on the host and use its memory as it is (cuda_memory_emulated.cc). On a GPU
// everything given is a block of its own, exactly as large as what was given, so that
// compute-sanitizer sees each access beside it (cuda_memory_gpu.cc).
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

  // Waits for the kernel; everything given is then as the kernel left it. Throws
  // std::runtime_error if the kernel failed.
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
