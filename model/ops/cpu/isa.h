#pragma once

// The instruction set that the CPU kernels use. The build targets x86-64-v2, so that one binary
// runs everywhere; each kernel is compiled for all three and picked at run time (see vectors.h).
namespace linnet::ops {

enum class Isa { kBaseline, kAvx2, kAvx512 };

// Torch's own choice, so that one switch (ATEN_CPU_CAPABILITY=default, avx2 or avx512) moves all
// kernels of the process. Read once.
Isa HostIsa();

const char* IsaName(Isa isa);

}  // namespace linnet::ops
