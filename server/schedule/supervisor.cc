#include "server/schedule/supervisor.h"

namespace linnet::server {

void Supervisor::Add(Supervised& engine) {
  MutexLock lock(mu_);
  busy_.reserve(engines_ + 1);
  busy_.push_back(&engine);
  ++engines_;
}

void Supervisor::Remove(Supervised& engine) {
  MutexLock lock(mu_);
  std::erase(busy_, &engine);
  --engines_;
  ++idle_periods_;
  KeepFailure(engine);  // since the last Tick
}

void Supervisor::SetIdle(Supervised& engine, bool idle) {
  MutexLock lock(mu_);
  if (!idle) return busy_.push_back(&engine);
  std::erase(busy_, &engine);
  ++idle_periods_;
}

std::optional<int64_t> Supervisor::idle_period() const {
  MutexLock lock(mu_);
  if (!busy_.empty()) return std::nullopt;
  return idle_periods_;
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
  bool late = false, failed = false;
  {
    MutexLock lock(mu_);
    const absl::Duration gap = gap_.Observe(now);
    if (failed_at_.has_value()) failed_at_ = After(*failed_at_, gap);
    for (Supervised* engine : busy_) {
      if (gap > absl::ZeroDuration()) engine->ForgiveGap(gap, now);
      engine->EndIfStalled(now);
      KeepFailure(*engine);
    }
    failed = failure_.has_value() && !failed_at_.has_value();
    if (failed) failed_at_ = now;
    late = failed_at_.has_value() && Elapsed(*failed_at_, now) >= grace_;
  }
  if (failed) failed_();
  if (late) end_();
}

std::optional<EngineFailure> Supervisor::failure() const {
  MutexLock lock(mu_);
  return failure_;
}

}  // namespace linnet::server
