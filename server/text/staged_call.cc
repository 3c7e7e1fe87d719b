#include "server/text/staged_call.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "server/text/stage_run.h"

namespace linnet::server {

StagedCall::StagedCall(const Services& services, Stages stages, std::shared_ptr<Permit> permit,
                       const CallContext& context, linnet::v1::Timings& timings, OnPart on_part,
                       Done done)
    : services(services),
      context(WithoutPermit(context)),
      permit(std::move(permit)),
      timings(timings),
      on_part(std::move(on_part)),
      stages_(std::move(stages)),
      stage_began_(context.arrived),
      done_(std::move(done)) {}

void StagedCall::BeginStage() {
  absl::Status status = stage().Begin(*permit);
  if (!status.ok()) return End(std::move(status));
  std::make_shared<StageRun>(shared_from_this())->Start();
}

void StagedCall::StageEnded(absl::Status status) {
  if (!status.ok() || is_last()) return End(std::move(status));
  try {
    ++current_;
    stage_began_ = absl::Now();
    BeginStage();
  } catch (...) {  // the call ends, also if there is no memory for its next stage
    End(ErrorOfException());
  }
}

void StagedCall::End(absl::Status status) {
  if (done_ == nullptr) return;
  permit.reset();
  std::exchange(done_, nullptr)(std::move(status));
}

}  // namespace linnet::server
