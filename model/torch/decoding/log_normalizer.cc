#include "model/torch/decoding/log_normalizer.h"

#include <algorithm>
#include <vector>

#include "model/ops/cpu/log_sum.h"
#include "model/ops/cpu/vectors.h"

namespace linnet::model {
namespace {

struct Kernel {
  template <int W>
  static LINNET_INLINE void Run(const float* logits, int64_t count, float scale,
                                ops::PartialSum* pieces, float* out) {
    int64_t piece = 0;
    for (int64_t i = 0; i < count; i += ops::kPieceTokens, ++piece) {
      pieces[piece] = ops::SumPiece<W>(logits + i, std::min(ops::kPieceTokens, count - i), scale);
    }
    *out = ops::JoinPieces<W>(pieces, piece, scale);
  }
};

}  // namespace

float LogNormalizer(const float* logits, int64_t count, float temperature) {
  thread_local std::vector<ops::PartialSum> pieces;
  pieces.resize((count + ops::kPieceTokens - 1) / ops::kPieceTokens);
  float result = 0;
  ops::RunBest<Kernel>(logits, count, 1.0f / temperature, pieces.data(), &result);
  return result;
}

}  // namespace linnet::model
