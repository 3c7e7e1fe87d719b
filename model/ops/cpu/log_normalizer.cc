#include "model/ops/cpu/log_normalizer.h"

#include <algorithm>
#include <vector>

#include "model/ops/cpu/log_sum.h"
#include "model/ops/cpu/vectors.h"

namespace linnet::ops {
namespace {

struct Kernel {
  template <int W>
  static LINNET_INLINE void Run(const float* logits, int64_t count, float scale, PartialSum* pieces,
                                float* out) {
    int64_t piece = 0;
    for (int64_t i = 0; i < count; i += kPieceTokens, ++piece) {
      pieces[piece] = SumPiece<W>(logits + i, std::min(kPieceTokens, count - i), scale);
    }
    *out = JoinPieces<W>(pieces, piece, scale);
  }
};

}  // namespace

float LogNormalizer(const float* logits, int64_t count, float temperature) {
  thread_local std::vector<PartialSum> pieces;
  pieces.resize((count + kPieceTokens - 1) / kPieceTokens);
  float result = 0;
  RunBest<Kernel>(logits, count, 1.0f / temperature, pieces.data(), &result);
  return result;
}

}  // namespace linnet::ops
