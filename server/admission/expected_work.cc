#include "server/admission/expected_work.h"

#include <algorithm>
#include <cmath>

#include "server/schedule/sequence.h"

namespace linnet::server {
namespace {

// Half-life of the ratio in source tokens: some hundred sentences.
constexpr double kHalfLife = 5'000;

}  // namespace

void CallSize::Add(const model::SequenceInput& input) {
  const int64_t row_count = model::RowsOf(input);
  const int64_t source_tokens = std::ssize(input.source);
  const int64_t max = MaxTokens(input);
  // A target to score has a known length.
  const int64_t min = input.target.has_value()
                          ? max
                          : std::min(max, source_tokens + input.options.min_target_tokens);
  tokens += max * row_count;
  longest = std::max(longest, max);
  rows += static_cast<double>(row_count);
  source += source_tokens * row_count;
  least += min * row_count;
}

void ExpectedWork::StepMade(const StepReport& report) {
  const auto finished = static_cast<double>(report.finished_source_tokens);
  finished_.Add(static_cast<double>(report.finished_steps), finished,
                std::exp2(-finished / kHalfLife));
  running_ = static_cast<double>(report.running_steps) /
             static_cast<double>(std::max<int64_t>(1, report.running_source_tokens));
}

int64_t ExpectedWork::Of(const CallSize& call) const {
  if (!finished_.known() || call.source == 0) return call.tokens;
  const double steps = std::max(finished_.value(), running_);
  const double expected = std::round(static_cast<double>(call.source) * (1 + steps));
  // Never more than what bounds it, also if that is beyond an integer.
  if (expected >= static_cast<double>(call.tokens)) return call.tokens;
  return std::max(static_cast<int64_t>(expected), call.least);
}

}  // namespace linnet::server
