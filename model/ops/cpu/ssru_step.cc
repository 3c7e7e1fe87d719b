#include <algorithm>
#include <cstring>

#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/ring.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Channels of one item: several threads share a row where there are few rows.
constexpr int64_t kSsruBlock = 64;

template <class T>
struct RecurrentStep {
  // W channels. `before` is null at a hypothesis's first position.
  template <int W>
  static LINNET_INLINE void Vector(const T* candidates, const T* gates, const float* before,
                                   float* after, T* y) {
    using V = Vectors<W>;
    const auto f = V::Sigmoid(V::Load(gates));
    auto c = (1.0f - f) * V::Load(candidates);
    if (before != nullptr) c += f * V::Load(before);
    V::Store(c, after);
    V::Store(c < 0 ? typename V::Floats{} : c, y);  // keeps NaN
  }

  // Items are numbered [rows, blocks of channels].
  template <int W>
  static LINNET_INLINE void Run(const SsruStepParams& p, int64_t blocks, int64_t begin,
                                int64_t end) {
    const auto take = [&](int64_t row, int64_t block) __attribute__((always_inline)) {
      const int64_t first = block * kSsruBlock;
      const int64_t last = std::min(first + kSsruBlock, p.channels);
      T* y = static_cast<T*>(p.y) + row * p.channels;
      if (IsIdle(p.state, row)) {
        std::fill(y + first, y + last, T{});
        return;
      }
      const T* candidates = static_cast<const T*>(p.projected) + row * 2 * p.channels;
      const T* gates = candidates + p.channels;
      float* after = OwnEntry<float>(p.state, row);
      const float* entries[2];
      const bool is_first = FindEntries<float>(p.state, row, after, 2, 1, entries) == 1;
      const float* before = is_first ? nullptr : entries[0];
      int64_t c = first;
      for (; c + W <= last; c += W) {
        Vector<W>(candidates + c, gates + c, before == nullptr ? nullptr : before + c, after + c,
                  y + c);
      }
      if (c == last) return;
      // The rest, in vectors that are padded: a scalar loop would round in another way.
      const int64_t rest = last - c;
      T few_candidates[W] = {}, few_gates[W] = {}, few_y[W];
      float few_before[W] = {}, few_after[W];
      std::memcpy(few_candidates, candidates + c, rest * sizeof(T));
      std::memcpy(few_gates, gates + c, rest * sizeof(T));
      if (before != nullptr) std::memcpy(few_before, before + c, rest * sizeof(float));
      Vector<W>(few_candidates, few_gates, before == nullptr ? nullptr : few_before, few_after,
                few_y);
      std::memcpy(after + c, few_after, rest * sizeof(float));
      std::memcpy(y + c, few_y, rest * sizeof(T));
    };
    ForItems(p.state, p.rows, blocks, begin, end, take);
  }
};

template <class T>
void Run(const SsruStepParams& p) {
  const int64_t blocks = (p.channels + kSsruBlock - 1) / kSsruBlock;
  const int64_t flops = 32 * std::min(kSsruBlock, p.channels);  // mostly the exponential
  ParallelFor(p.rows * blocks, flops, [&](int64_t begin, int64_t end) {
    RunBest<RecurrentStep<T>>(p, blocks, begin, end);
  });
}

}  // namespace

void SsruStepCpu(const SsruStepParams& params) {
  DispatchCpuType(params.type, [&](auto element) { Run<decltype(element)>(params); });
}

}  // namespace linnet::ops
