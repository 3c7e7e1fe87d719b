#pragma once

// The instruction set of the CPU kernels. The build targets x86-64-v2, so that one binary runs
// everywhere; each kernel is compiled for all three sets and selected at run time (vectors.h).
namespace linnet::ops {

enum class Isa { kBaseline, kAvx2, kAvx512 };

// Torch's own choice, so that one variable (ATEN_CPU_CAPABILITY=default, avx2 or avx512) selects it
// for all kernels of the process. Read once.
Isa HostIsa();

const char* IsaName(Isa isa);

}  // namespace linnet::ops
