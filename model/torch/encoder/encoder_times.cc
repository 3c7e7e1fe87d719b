#include "model/torch/encoder/encoder_times.h"

#include <algorithm>
#include <cmath>

namespace linnet::model {

EncoderCost FitEncoderCost(const EncoderTimes& times) {
  const double per_token =
      std::max(0.0, (times.many_seconds - times.few_seconds) /
                        static_cast<double>(times.many_tokens - times.few_tokens));
  const double fixed = std::max(0.0, times.few_seconds - times.few_tokens * per_token);
  const double steps = fixed / std::max(times.step_seconds, 1e-9);
  const bool flat = fixed >= per_token * kMaxCallTokens;
  return {.call_steps = static_cast<float>(std::min<double>(steps, kMaxCallSteps)),
          .call_tokens = flat ? kMaxCallTokens : static_cast<int>(std::lround(fixed / per_token))};
}

}  // namespace linnet::model
