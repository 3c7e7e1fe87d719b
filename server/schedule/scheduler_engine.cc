// The life of the engine of a scheduler: builds, loads, unloads it, and replaces it after a
// failure.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/log.h"
#include "server/schedule/batcher.h"
#include "server/schedule/engine_memory.h"
#include "server/schedule/scheduler.h"

namespace linnet::server {
namespace {

// Interval at which a scheduler that waits for memory tries again.
constexpr absl::Duration kReserveInterval = absl::Milliseconds(20);

}  // namespace

absl::Status Scheduler::BuildFirst() {
  const bool later = demand_.memory != nullptr && !demand_.pinned;
  if (later) {
    life_.Announce(demand_.info);
    MutexLock lock(mu_);
    status_.loads.state = LoadState::kAvailable;
  } else {
    // A pinned engine is loaded even if there is no room: others make room when they are needed.
    const MonotonicTime before = MonotonicNow();
    ASSIGN_OR_RETURN(std::unique_ptr<model::Engine> engine, BuildMeasured());
    Loaded(before);
    life_.Install(std::move(engine));
  }
  batcher_ = std::make_unique<Batcher>(*life_.engine(), options_);
  return absl::OkStatus();
}

bool Scheduler::Rebuild(absl::Status why, std::vector<std::string> request_ids) {
  while (true) {
    const bool for_good = model::IsDeviceLost(why) || life_.restarts().give_up();
    const absl::Duration delay =
        for_good ? EngineStatus::kProcessRestart : life_.restarts().Failed(MonotonicNow());
    const absl::Status status = EngineDown(std::max(delay, absl::Seconds(1)));
    const MonotonicTime next_attempt = After(MonotonicNow(), delay);
    {
      MutexLock lock(mu_);
      status_.SetDown(for_good ? EngineHealth::State::kFailed : EngineHealth::State::kDown, why,
                      request_ids);
    }
    EndAll(status, status);
    view_.AnswerEmpty();
    if (for_good) return false;
    Log(LogLevel::kError, "engine_failed",
        {{"model", model_},
         {"why", why.ToString()},
         {"request_ids", absl::StrJoin(request_ids, ",")},
         {"restart_in_seconds", absl::ToDoubleSeconds(delay)}});
    {
      MutexLock lock(mu_);
      while (phase_ != Phase::kStopping && delay > absl::ZeroDuration() &&
             changed_.WaitUntil(mu_, next_attempt)) {
      }
      if (phase_ == Phase::kStopping) return false;
    }
    life_.restarts().Rebuilding();
    absl::StatusOr<EngineLife::Built> built = life_.Build();
    why = built.status();
    if (!built.ok()) continue;
    life_.Install(std::move(built->engine));
    MutexLock lock(mu_);
    status_.SetRebuilt();
    return true;
  }
}

LoadStats Scheduler::load_stats() const {
  LoadStats stats;
  {
    MutexLock lock(mu_);
    stats = status_.loads;
  }
  // Without this lock: that of EngineMemory is taken before it.
  if (stats.loads == 0 && demand_.memory != nullptr)
    stats.load_time = demand_.memory->EstimateLoad(demand_.bytes);
  return stats;
}

std::optional<MonotonicTime> Scheduler::idle_since() const {
  MutexLock lock(mu_);
  const bool idle = status_.loads.state == LoadState::kLoaded && idle_ && inbox_.empty();
  if (!idle || demand_.pinned || status_.health.state != EngineHealth::State::kUp)
    return std::nullopt;
  return status_.last_used;
}

bool Scheduler::Unload() {
  MutexLock lock(mu_);
  if (!idle_ || !inbox_.empty()) return false;
  unload_ = true;
  changed_.NotifyAll();
  return true;
}

void Scheduler::UnloadNow() {
  life_.Unload();
  {
    MutexLock lock(mu_);
    status_.loads.state = LoadState::kAvailable;
    ++status_.loads.unloads;
  }
  demand_.memory->Release(*this);
  Log(LogLevel::kInfo, "engine_unloaded", {{"model", model_}});
}

bool Scheduler::Load() {
  if (absl::Status fits = demand_.memory->CheckFits(BytesToReserve()); !fits.ok()) {
    LoadFailed(fits);
    return true;
  }
  {
    MutexLock lock(mu_);
    if (phase_ >= Phase::kEnding) return true;
    status_.loads.state = LoadState::kLoading;
  }
  if (!ReserveMemory()) {
    MutexLock lock(mu_);
    status_.loads.state = LoadState::kAvailable;
    return true;
  }
  const MonotonicTime before = MonotonicNow();
  absl::StatusOr<std::unique_ptr<model::Engine>> engine = BuildMeasured();
  if (!engine.ok()) {
    // Only a new process helps, and perhaps no other engine is loaded that would notice.
    if (model::IsDeviceLost(engine.status())) return Rebuild(engine.status(), {});
    LoadFailed(engine.status());
    return true;
  }
  batcher_->TakeMeasuredCost((*engine)->info());
  life_.Install(*std::move(engine));
  // Until the warm-up has ended, the sequences in the inbox wait for the load.
  if (!WarmUp()) return false;
  Loaded(before);
  const LoadStats stats = load_stats();
  Log(LogLevel::kInfo, "engine_loaded",
      {{"model", model_},
       {"seconds", absl::ToDoubleSeconds(stats.load_time)},
       {"bytes", stats.bytes}});
  return true;
}

bool Scheduler::WarmUp() {
  // The estimates that the first one has taught are kept when the engine is unloaded.
  if (demand_.warm_up == nullptr || load_stats().loads > 0) return true;
  for (const int rows : {1, life_.engine()->info().rows}) {
    for (std::unique_ptr<Sequence>& sequence : demand_.warm_up(rows))
      batcher_->Add(sequence, absl::Now()).IgnoreError();
    while (!batcher_->idle()) {
      {
        MutexLock lock(mu_);
        if (phase_ >= Phase::kEnding) return true;  // Serve ends the rest
      }
      if (!Step()) return false;
    }
  }
  return true;
}

void Scheduler::Loaded(MonotonicTime began) {
  const MonotonicTime now = MonotonicNow();
  const absl::Duration time = Elapsed(began, now);
  if (demand_.memory != nullptr) demand_.memory->RecordLoad(demand_.bytes, time);
  MutexLock lock(mu_);
  status_.SetLoaded(time, now);
}

int64_t Scheduler::BytesToReserve() const {
  const int64_t bytes = std::max(load_stats().bytes, demand_.bytes);
  const int64_t max = demand_.memory->max_bytes();
  // An engine that has grown beyond the limit is loaded alone.
  return max > 0 && demand_.bytes <= max ? std::min(bytes, max) : bytes;
}

bool Scheduler::ReserveMemory() {
  const int64_t bytes = BytesToReserve();
  while (!demand_.memory->Reserve(*this, bytes)) {
    EndUnwanted();
    view_.AnswerEmpty();
    MutexLock lock(mu_);
    if (inbox_.empty() || phase_ >= Phase::kEnding) return false;
    changed_.WaitUntil(mu_, After(MonotonicNow(), kReserveInterval));
  }
  return true;
}

absl::StatusOr<std::unique_ptr<model::Engine>> Scheduler::BuildMeasured() {
  ASSIGN_OR_RETURN(EngineLife::Built built, life_.Build());
  // The growth is too small if memory was free in the process before.
  const int64_t bytes = std::max(built.bytes, demand_.bytes);
  {
    MutexLock lock(mu_);
    status_.loads.bytes = bytes;
  }
  if (demand_.memory != nullptr) demand_.memory->SetLoaded(*this, bytes);
  return std::move(built.engine);
}

void Scheduler::LoadFailed(const absl::Status& why) {
  demand_.memory->Release(*this);
  const MonotonicTime now = MonotonicNow();
  const absl::Duration delay = std::max(life_.restarts().Failed(now), absl::Seconds(1));
  {
    MutexLock lock(mu_);
    status_.SetDown(EngineHealth::State::kDown, why, {});
    status_.loads.state = LoadState::kAvailable;
    ++status_.loads.failures;
    status_.next_load = After(now, delay);
  }
  Log(LogLevel::kError, "engine_not_loaded",
      {{"model", model_},
       {"why", why.ToString()},
       {"retry_in_seconds", absl::ToDoubleSeconds(delay)}});
  EndAll(EngineDown(delay), EngineDown(delay));
}

void Scheduler::EndUnwanted() {
  const absl::Time now = absl::Now();
  const auto expired = [&](const auto& sequence) { return sequence->deadline <= now; };
  std::vector<std::unique_ptr<Sequence>> unwanted;
  {
    MutexLock lock(mu_);
    const auto first = std::stable_partition(
        inbox_.begin(), inbox_.end(), [&](const std::unique_ptr<Sequence>& sequence) {
          return !expired(sequence) &&
                 (sequence->cancelled == nullptr || !sequence->cancelled->cancelled());
        });
    unwanted.assign(std::make_move_iterator(first), std::make_move_iterator(inbox_.end()));
    inbox_.erase(first, inbox_.end());
  }
  if (unwanted.empty()) return;
  StepReport report;
  for (auto& sequence : unwanted) {
    const bool late = expired(sequence);
    ++(late ? report.expired : report.cancelled);
    sequence->End(
        late ? absl::DeadlineExceededError("the deadline passed while the model was loading")
             : absl::CancelledError("cancelled by the caller"));
  }
  if (observer_) observer_(report, absl::ZeroDuration());
}

}  // namespace linnet::server
