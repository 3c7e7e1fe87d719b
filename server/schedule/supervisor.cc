#include "server/schedule/supervisor.h"

namespace linnet::server {

void Supervisor::Add(Supervised& engine) {
  MutexLock lock(mu_);
  engines_.insert(&engine);
}

void Supervisor::Remove(Supervised& engine) {
  MutexLock lock(mu_);
  engines_.erase(&engine);
  KeepFailure(engine);  // since the last Tick
}

void Supervisor::KeepFailure(const Supervised& engine) {
  if (failure_.has_value()) return;
  try {
    failure_ = engine.failure();
  } catch (...) {  // there is one, and no memory for its details
    failure_ = EngineFailure{"", absl::Status(absl::StatusCode::kInternal, ""), {}};
  }
}

void Supervisor::SetGrace(absl::Duration grace) {
  MutexLock lock(mu_);
  grace_ = grace;
}

void Supervisor::Tick(MonotonicTime now) {
  bool late = false;
  {
    MutexLock lock(mu_);
    const absl::Duration gap = gap_.Observe(now);
    if (failed_at_.has_value()) failed_at_ = After(*failed_at_, gap);
    for (Supervised* engine : engines_) {
      if (gap > absl::ZeroDuration()) engine->ForgiveGap(gap, now);
      engine->EndIfStalled(now);
      KeepFailure(*engine);
    }
    if (failure_.has_value() && !failed_at_.has_value()) failed_at_ = now;
    late = failed_at_.has_value() && Elapsed(*failed_at_, now) >= grace_;
  }
  if (late) end_();
}

std::optional<EngineFailure> Supervisor::failure() const {
  MutexLock lock(mu_);
  return failure_;
}

}  // namespace linnet::server
