#pragma once

#include <cstdint>

namespace linnet::model {

// log(sum_i exp(logits[i] / temperature)) in float32, the maximum taken out first. NaN if a logit
// is NaN or +infinity, or if all are -infinity. The bits of the result depend on the row alone, and
// are those of the operator best_logits.
float LogNormalizer(const float* logits, int64_t count, float temperature);

}  // namespace linnet::model
