#include <algorithm>
#include <cmath>
#include <memory>

#include "model/ops/attention.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Points keys[s] at the key of the row's token s; its value lies `size` elements further on.
template <class T>
void FindKeys(const SourceAttentionParams& p, int64_t row, const T** keys) {
  const int32_t* blocks = p.blocks + row * p.row_blocks;
  const int64_t length = p.lengths[row];
  for (int64_t s = 0; s < length; ++blocks) {
    const T* key = static_cast<const T*>(p.encoder_cache) + *blocks * p.block_tokens * 2 * p.size;
    const int64_t end = std::min(length, s + p.block_tokens);
    for (; s < end; ++s, key += 2 * p.size) keys[s] = key;
  }
}

template <class T>
struct Attend {
  // Items are numbered [rows, heads].
  template <int W>
  static LINNET_INLINE void Run(const SourceAttentionParams& p, float scale, float* query,
                                float* scores, const T** keys, int64_t begin, int64_t end) {
    const int64_t head_size = p.size / p.heads;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / p.heads;
      const int64_t h = item % p.heads;
      const int64_t channel = h * head_size;
      const int64_t length = p.lengths[row];
      T* out = static_cast<T*>(p.y) + item * head_size;
      if (length == 0) {
        std::fill_n(out, head_size, T{});
        continue;
      }
      if (item == begin || h == 0) FindKeys<T>(p, row, keys);
      LoadQuery<W>(static_cast<const T*>(p.query) + item * head_size, head_size, scale, query);

      Scores<W>(query, keys, length, channel, head_size, scores);
      Softmax<W>(scores, length, length, scores);
      const auto values = [&](int64_t j) __attribute__((always_inline)) {
        return keys[j] + p.size + channel;
      };
      WeightedSum<W>(RowWeights{scores}, length, values, head_size, out);
    }
  }
};

template <class T>
void Run(const SourceAttentionParams& p) {
  const int64_t longest = *std::max_element(p.lengths, p.lengths + p.rows);
  const int64_t head_size = p.size / p.heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
  const int64_t flops = longest * (2 * head_size + 8);  // 8: the exponential
  ParallelFor(p.rows * p.heads, flops, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float[]> query(new float[head_size]);
    const std::unique_ptr<float[]> scores(new float[PaddedWidth(longest)]);
    const std::unique_ptr<const T*[]> keys(new const T*[longest]);
    RunBest<Attend<T>>(p, scale, query.get(), scores.get(), keys.get(), begin, end);
  });
}

}  // namespace

void SourceAttentionCpu(const SourceAttentionParams& params) {
  if (params.type == FloatType::kFloat32) {
    Run<float>(params);
  } else {  // the operator's checks allow no third type on the CPU
    Run<BFloat16>(params);
  }
}

}  // namespace linnet::ops
