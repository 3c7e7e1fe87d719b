#pragma once

#include <cstdint>

namespace linnet::ops {

// log(sum_i exp(logits[i] / temperature)) in float32, computed relative to the max. NaN if a logit
// is NaN or +infinity, or if all are -infinity. Batch invariant, and bit-identical to best_logits.
float LogNormalizer(const float* logits, int64_t count, float temperature);

}  // namespace linnet::ops
