#pragma once

#include <cstdint>
#include <cstring>

#include "model/ops/cpu/vectors.h"

// Tiles for the int8 gemm (gemm_tiles.h): two of 16 rows of values, two of 16 outputs, and the four
// of their sums. A chunk is 64 inputs: 16 groups of four, as a panel of PackedMatrix holds them.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
namespace linnet::ops {

constexpr int64_t kTileEdge = 16;             // rows and outputs of a tile
constexpr int64_t kTileInputs = 64;           // inputs of a chunk
constexpr int64_t kTileSums = 2 * kTileEdge;  // rows and outputs of all four sums

// True if the processor has AMX for int8, the system lets this process use it (it is asked once),
// and a product of tiles is right.
bool HasAmx();

// Plain loops in place of the instructions: what AMX must compute, and a test of the gemm around it
// on other processors.
struct EmulatedTiles {
  LINNET_INLINE void Clear() { std::memset(sums, 0, sizeof(sums)); }

  // Adds a chunk's products, exactly: of 16 Rows rows of unsigned values, a row every `depth`
  // bytes, and of two times 16 outputs side by side, a group of inputs every `stride` bytes.
  template <int Rows>
  LINNET_INLINE void Add(const uint8_t* values, int64_t depth, const int8_t* weights,
                         int64_t stride) {
    for (int64_t r = 0; r < Rows * kTileEdge; ++r) {
      for (int64_t k = 0; k < kTileInputs; ++k) {
        const int32_t value = values[r * depth + k];
        const int8_t* group = weights + k / 4 * stride + k % 4;
        for (int64_t n = 0; n < kTileSums; ++n) sums[r][n] += value * group[4 * n];
      }
    }
  }

  // out: [16 Rows, 32].
  template <int Rows>
  LINNET_INLINE void Store(int32_t* out) {
    std::memcpy(out, sums, Rows * kTileEdge * sizeof(sums[0]));
  }

  int32_t sums[kTileSums][kTileSums];
};

#ifndef __clang__
// The same with the instructions. Registers 0 to 3 hold the sums, 4 and 5 weights, 6 and 7 values.
// Constructed on each thread that uses it; the destructor gives the registers back, whose content a
// switch of threads would save otherwise.
class AmxTiles {
 public:
  LINNET_INLINE AmxTiles() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    static_assert(sizeof(config) == 64);
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  LINNET_INLINE ~AmxTiles() { __asm__ volatile("tilerelease" ::); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  LINNET_INLINE void Clear() {
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::);
  }

  template <int Rows>
  LINNET_INLINE void Add(const uint8_t* values, int64_t depth, const int8_t* weights,
                         int64_t stride) {
    Load<4>(weights, stride);
    Load<5>(weights + 4 * kTileEdge, stride);
    Load<6>(values, depth);
    __asm__ volatile("tdpbusd %%tmm4, %%tmm6, %%tmm0\n\ttdpbusd %%tmm5, %%tmm6, %%tmm1" ::);
    if constexpr (Rows == 2) {
      Load<7>(values + kTileEdge * depth, depth);
      __asm__ volatile("tdpbusd %%tmm4, %%tmm7, %%tmm2\n\ttdpbusd %%tmm5, %%tmm7, %%tmm3" ::);
    }
  }

  template <int Rows>
  LINNET_INLINE void Store(int32_t* out) {
    StoreSums<0>(out);
    StoreSums<1>(out + kTileEdge);
    if constexpr (Rows == 2) {
      StoreSums<2>(out + kTileEdge * kTileSums);
      StoreSums<3>(out + kTileEdge * kTileSums + kTileEdge);
    }
  }

 private:
  template <int Register>
  static LINNET_INLINE void Load(const void* from, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Register)
                     : "memory");
  }
  template <int Register>
  static LINNET_INLINE void StoreSums(int32_t* to) {
    constexpr int64_t kStride = kTileSums * sizeof(int32_t);
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(kStride), "i"(Register)
                     : "memory");
  }
};
#else
using AmxTiles = EmulatedTiles;  // HasAmx is false
#endif

}  // namespace linnet::ops
