#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/text/call_context.h"
#include "server/text/stage.h"
#include "server/text/text_pool.h"

namespace linnet::server {

// A call whose texts go through engines, from its checked request to its answer: runs its stages,
// one after the other. What the stages have in common is public, for StageRun.
//
// The run of the current stage shares it; it is destroyed with the last of them. One thread at a
// time calls it.
class StagedCall : public std::enable_shared_from_this<StagedCall> {
 public:
  // Called exactly once, with no lock held, on any thread. The call releases its permit before.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  // Receives the parts of a stream, in order, one at a time, with no lock held, before Done. It
  // must not block, and must not buffer more than the answer takes.
  using OnPart = absl::AnyInvocable<void(linnet::v1::TextPart)>;
  // What all calls share. Pool and metrics must outlive the call.
  struct Services {
    TextPool& pool;
    Metrics& metrics;
    absl::Duration slow;  // a call that takes that long or longer logs the duration of its phases
  };

  // Sets the timings of the response, which has to outlive the call. The permit is shared with the
  // sender of the reply. Without `on_part` nothing is streamed.
  StagedCall(const Services& services, Stages stages, std::shared_ptr<Permit> permit,
             const CallContext& context, linnet::v1::Timings& timings, OnPart on_part, Done done);

  // Begins the first stage.
  void Start() { BeginStage(); }
  // The current stage has ended: begins the next one, or ends the call after the last stage or an
  // error.
  void StageEnded(absl::Status status);

  const Services services;
  const CallContext context;
  std::shared_ptr<Permit> permit;
  linnet::v1::Timings& timings;
  OnPart on_part;

  Stage& stage() const { return *stages_[current_]; }
  const Stages& stages() const { return stages_; }
  size_t current() const { return current_; }
  bool is_first() const { return current_ == 0; }
  bool is_last() const { return current_ + 1 == stages_.size(); }
  bool streams() const { return on_part != nullptr && is_last(); }
  absl::Time stage_began() const { return stage_began_; }

 private:
  void BeginStage();
  void End(absl::Status status);

  const Stages stages_;
  size_t current_ = 0;
  absl::Time stage_began_;
  Done done_;
};

}  // namespace linnet::server
