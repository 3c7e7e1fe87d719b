// Runs CUDA kernels on the CPU, to test their arithmetic, indices and barriers without a GPU. A
// thread of a block is a fiber; a barrier or a warp's exchange switches to the next one. Blocks run
// one after the other. The header is included before every emulated file (emulate.py).
//
// It finds wrong results, indices out of range (by asserts and the host's sanitizers), barriers
// that some threads do not reach (the program ends), and shared memory that is read before a
// barrier, since the order of fibers differs between blocks. It finds no races between blocks and
// measures no speed.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

namespace linnet::emulated {

constexpr int kWarp = 32;

struct Place {
  uint3 thread, block;
  dim3 block_size, grid_size;
};

// The running fiber's place.
const Place& place();
void* dynamic_shared();
// Wait until all running threads of the block (of the warp) have arrived.
void WaitForBlock();
void WaitForWarp();
// Slots for the exchange between the lanes of a warp, [kWarp]; a lane that has ended leaves its
// slot empty.
struct Slot {
  uint64_t value;
  bool present;
};
Slot* Exchange(uint64_t own);
// The exchanges of all warps until now.
int64_t exchanges();

// Runs every block to its end.
void Launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& kernel);

template <class T>
T FromLane(T own, int lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &own, sizeof(T));
  const Slot* slots = Exchange(bits);
  if (lane < 0 || lane >= kWarp || !slots[lane].present) return own;
  T other;
  std::memcpy(&other, &slots[lane].value, sizeof(T));
  return other;
}

inline int lane() { return static_cast<int>(place().thread.x) % kWarp; }

inline unsigned Ballot(bool mine) {
  const Slot* slots = Exchange(mine);
  unsigned bits = 0;
  for (int i = 0; i < kWarp; ++i) bits |= unsigned(slots[i].present && slots[i].value != 0) << i;
  return bits;
}

}  // namespace linnet::emulated

#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __forceinline__
#define __forceinline__ inline
#define threadIdx (linnet::emulated::place().thread)
#define blockIdx (linnet::emulated::place().block)
#define blockDim (linnet::emulated::place().block_size)
#define gridDim (linnet::emulated::place().grid_size)

inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline void __syncthreads() { linnet::emulated::WaitForBlock(); }
inline void __syncwarp(unsigned = ~0u) { linnet::emulated::WaitForWarp(); }

template <class T>
T __shfl_sync(unsigned, T value, int from) {
  return linnet::emulated::FromLane(value, from);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return linnet::emulated::FromLane(value, linnet::emulated::lane() ^ mask);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int by) {
  return linnet::emulated::FromLane(value, linnet::emulated::lane() - by);
}
inline unsigned __ballot_sync(unsigned, bool mine) { return linnet::emulated::Ballot(mine); }
inline bool __all_sync(unsigned, bool mine) { return linnet::emulated::Ballot(!mine) == 0; }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline float __expf(float x) { return std::exp(x); }
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
// Only one fiber runs at a time.
inline int atomicAdd(int* at, int by) {
  const int before = *at;
  *at += by;
  return before;
}
// CUDA's min and max accept any pair of integer types.
template <class A, class B>
constexpr auto min(A a, B b) -> std::common_type_t<A, B> {
  return a < b ? a : b;
}
template <class A, class B>
constexpr auto max(A a, B b) -> std::common_type_t<A, B> {
  return a > b ? a : b;
}
