#include "server/schedule/engine_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/schedule/scheduler.h"

namespace linnet::server {

absl::Status EngineMemory::CheckFits(int64_t bytes) const {
  int64_t pinned = 0;
  MutexLock lock(mu_);
  for (const auto& [scheduler, reserved] : reserved_) {
    if (scheduler->pinned()) pinned += reserved;
  }
  if (max_bytes_ == 0 || pinned + bytes <= max_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the engine needs ", bytes, " bytes, pinned models have ", pinned,
      ", and max-model-bytes is ", max_bytes_, ": raise the limit, or pin fewer models"));
}

bool EngineMemory::Reserve(Scheduler& scheduler, int64_t bytes) {
  MutexLock lock(mu_);
  if (loading_ != nullptr) return false;
  if (max_bytes_ > 0 && bytes_ + bytes > max_bytes_) {
    MakeRoom(bytes);
    return false;
  }
  loading_ = &scheduler;
  reserved_[&scheduler] = bytes;
  bytes_ += bytes;
  return true;
}

void EngineMemory::SetLoaded(Scheduler& scheduler, int64_t bytes) {
  MutexLock lock(mu_);
  if (loading_ == &scheduler) loading_ = nullptr;
  bytes_ += bytes - std::exchange(reserved_[&scheduler], bytes);
}

void EngineMemory::Release(Scheduler& scheduler) {
  MutexLock lock(mu_);
  if (loading_ == &scheduler) loading_ = nullptr;
  const auto reserved = reserved_.find(&scheduler);
  if (reserved == reserved_.end()) return;
  bytes_ -= reserved->second;
  reserved_.erase(reserved);
}

void EngineMemory::RecordLoad(int64_t bytes, absl::Duration time) {
  MutexLock lock(mu_);
  ++loads_;
  loaded_bytes_ += bytes;
  load_time_ += time;
}

absl::Duration EngineMemory::EstimateLoad(int64_t bytes) const {
  MutexLock lock(mu_);
  if (loaded_bytes_ == 0) return absl::ZeroDuration();
  const double loads = static_cast<double>(bytes) / static_cast<double>(loaded_bytes_);
  return load_time_ * std::min(loads, 1.0 / static_cast<double>(loads_));
}

int64_t EngineMemory::bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

void EngineMemory::MakeRoom(int64_t bytes) {
  std::vector<std::pair<MonotonicTime, Scheduler*>> idle;
  for (const auto& [scheduler, reserved] : reserved_) {
    if (const auto since = scheduler->idle_since(); since.has_value())
      idle.emplace_back(*since, scheduler);
  }
  std::sort(idle.begin(), idle.end());
  int64_t left = bytes_ + bytes - max_bytes_;
  for (const auto& [since, scheduler] : idle) {
    if (left <= 0) return;
    if (scheduler->Unload()) left -= reserved_.at(scheduler);
  }
}

}  // namespace linnet::server
