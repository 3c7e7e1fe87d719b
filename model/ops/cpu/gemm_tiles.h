#pragma once

#include <algorithm>
#include <cstring>

#include "model/ops/cpu/amx.h"
#include "model/ops/cpu/gemm.h"

// The int8 gemm in tiles (amx.h), for whole tiles of 16 rows. Its sums are exact, and it finishes
// them as the gemm with vectors does, so the bits are the same.
namespace linnet::ops {

// sum * row_scale * scale + bias, for W outputs.
template <int W>
LINNET_INLINE typename Vectors<W>::Floats FinishInt8(typename Vectors<W>::Floats sum,
                                                     float row_scale,
                                                     typename Vectors<W>::Floats scales,
                                                     typename Vectors<W>::Floats bias) {
  return sum * row_scale * scales + bias;
}

// The rows that tiles compute: whole tiles, or none where the inputs fill no whole chunks. The
// remaining ones are faster with vectors, as few rows are.
inline int64_t RowsInTiles(const GemmParams& p) {
  return p.weight->depth() % kTileInputs == 0 ? p.rows / kTileEdge * kTileEdge : 0;
}

template <class Tiles>
struct TileKernel {
  static constexpr int64_t kPanel = PackedMatrix::kPanel;

  template <int W>
  static LINNET_INLINE void Run(const GemmParams& p) {
    Tiles tiles;
    // Rows that are multiplied with all panels before the next ones, so that they stay in the L2
    // cache.
    constexpr int64_t kBlockRows = 3 * kTileSums;
    const int64_t rows = RowsInTiles(p);
    for (int64_t block = 0; block < rows; block += kBlockRows) {
      const int64_t end = std::min(rows, block + kBlockRows);
      for (int64_t panel = p.begin; panel < p.end; ++panel) {
        for (int64_t row = block; row < end; row += kTileSums) {
          for (int64_t column = 0; column < kPanel; column += kTileSums) {
            if (end - row >= kTileSums) {
              Multiply<W, 2>(tiles, p, row, panel, column);
            } else {
              Multiply<W, 1>(tiles, p, row, panel, column);
            }
          }
        }
      }
    }
  }

 private:
  template <int W, int TileRows>
  static LINNET_INLINE void Multiply(Tiles& tiles, const GemmParams& p, int64_t row, int64_t panel,
                                     int64_t column) {
    using V = Vectors<W>;
    typedef int32_t Ints __attribute__((vector_size(W * sizeof(int32_t))));
    constexpr int64_t kGroup = PackedMatrix::kGroup, kStride = kPanel * kGroup;
    const int64_t depth = p.weight->depth();
    const uint8_t* values = p.values + row * depth;
    const int8_t* weights = p.weight->int8_panel(panel) + column * kGroup;
    tiles.Clear();
    for (int64_t k = 0; k < depth; k += kTileInputs) {
      tiles.template Add<TileRows>(values + k, depth, weights + k / kGroup * kStride, kStride);
    }
    alignas(64) int32_t sums[kTileSums * kTileSums];
    tiles.template Store<TileRows>(sums);
    const int64_t first = panel * kPanel + column;
    float* out = p.out + row * p.out_stride + (panel - p.begin) * kPanel + column;
    for (int64_t c = 0; c < kTileSums; c += W) {
      Ints corrections;
      std::memcpy(&corrections, p.weight->corrections() + first + c, sizeof(corrections));
      const auto scales = V::Load(p.weight->scales() + first + c);
      const auto bias = p.bias ? V::Load(p.bias + first + c) : typename V::Floats{};
      for (int64_t r = 0; r < TileRows * kTileEdge; ++r) {
        Ints sum;
        std::memcpy(&sum, sums + r * kTileSums + c, sizeof(sum));
        const auto exact = __builtin_convertvector(sum + corrections, typename V::Floats);
        V::Store(FinishInt8<W>(exact, p.row_scales[row + r], scales, bias),
                 out + r * p.out_stride + c);
      }
    }
  }
};

}  // namespace linnet::ops
