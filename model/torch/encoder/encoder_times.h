#pragma once

#include "model/runtime/engine.h"

namespace linnet::model {

// Seconds of encoder calls with few and with many source tokens, and of a decoder step.
struct EncoderTimes {
  int few_tokens = 0, many_tokens = 1;  // few_tokens < many_tokens
  double few_seconds = 0, many_seconds = 0, step_seconds = 0;
};

// The line through both calls: what a call costs without tokens, in steps and in tokens. Where a
// call takes the same time with few tokens as with many, it costs kMaxCallTokens.
EncoderCost FitEncoderCost(const EncoderTimes& times);

inline constexpr int kMaxCallTokens = 1 << 14;
inline constexpr float kMaxCallSteps = 16;

}  // namespace linnet::model
