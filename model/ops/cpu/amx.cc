#include "model/ops/cpu/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "model/ops/cpu/gemm.h"

namespace linnet::ops {
namespace {

#ifdef __clang__
bool MayUseAmx() { return false; }  // AmxTiles is for GCC
#else
bool ProductIsRight() {
  constexpr int64_t kRows = kTileSums, kOutputs = kTileSums;
  uint8_t values[kRows * kTileInputs];
  int8_t weights[kTileInputs * kOutputs];
  for (int64_t i = 0; i < kRows * kTileInputs; ++i) values[i] = static_cast<uint8_t>(i * 37 + 11);
  for (int64_t i = 0; i < kTileInputs * kOutputs; ++i) {
    weights[i] = static_cast<int8_t>(i * 91 + i / 64);
  }
  constexpr int64_t kStride = 4 * kOutputs;
  EmulatedTiles want;
  want.Clear();
  want.Add<2>(values, kTileInputs, weights, kStride);
  int32_t got[kRows * kOutputs];
  {
    AmxTiles tiles;
    tiles.Clear();
    tiles.Add<2>(values, kTileInputs, weights, kStride);
    tiles.Store<2>(got);
  }
  return std::memcmp(got, want.sums, sizeof(got)) == 0;
}

bool MayUseAmx() {
  // asm/prctl.h of Linux 5.16; Debian 12's C library does not have the names.
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return HasVnni() && __builtin_cpu_supports("amx-tile") != 0 &&
         __builtin_cpu_supports("amx-int8") != 0 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 && ProductIsRight();
}
#endif

}  // namespace

bool HasAmx() {
  static const bool may = MayUseAmx();
  return may;
}

}  // namespace linnet::ops
