#include "tests/ops/cuda/memory.h"

namespace linnet::ops {

KernelMemory::~KernelMemory() = default;
void* KernelMemory::Give(void* host, int64_t) { return host; }
void KernelMemory::TakeBack() {}

}  // namespace linnet::ops
