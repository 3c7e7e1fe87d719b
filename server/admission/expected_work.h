#pragma once

#include <cstdint>

#include "server/admission/call_size.h"
#include "server/schedule/recent_ratio.h"
#include "server/schedule/step_report.h"

namespace linnet::server {

// The work that calls to a model are expected to take: few targets are as long as they may be.
//
// A target is expected to take as many steps for each token of its source as those that finished
// lately, or, if that is more, as those that run now have taken already. Deterministic. Not
// thread-safe: Admission owns it and guards it by its lock.
class ExpectedWork {
 public:
  void StepMade(const StepReport& report);
  // The expected part of call.tokens, at least call.least. All of them before the first sequence
  // has finished, and if the source is not known.
  int64_t Of(const CallSize& call) const;

 private:
  RecentRatio finished_;  // steps per source token
  double running_ = 0;    // the same of the running sequences, which have not ended
};

}  // namespace linnet::server
