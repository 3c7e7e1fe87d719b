#include "server/schedule/supervisor.h"

#include "server/schedule/scheduler.h"

namespace linnet::server {

void Supervisor::Add(Scheduler& scheduler) {
  MutexLock lock(mu_);
  schedulers_.insert(&scheduler);
}

void Supervisor::Remove(Scheduler& scheduler) {
  MutexLock lock(mu_);
  schedulers_.erase(&scheduler);
}

void Supervisor::SetGrace(absl::Duration grace) {
  MutexLock lock(mu_);
  grace_ = grace;
}

void Supervisor::Tick(MonotonicTime now) {
  bool late = false;
  {
    MutexLock lock(mu_);
    for (Scheduler* scheduler : schedulers_) {
      scheduler->EndIfStalled(now);
      if (failure_.has_value()) continue;
      failure_ = scheduler->failure();
      failed_at_ = now;
    }
    late = failure_.has_value() && Elapsed(failed_at_, now) >= grace_;
  }
  if (late) end_();
}

std::optional<EngineFailure> Supervisor::failure() const {
  MutexLock lock(mu_);
  return failure_;
}

}  // namespace linnet::server
