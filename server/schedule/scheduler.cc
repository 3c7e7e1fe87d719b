#include "server/schedule/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"

namespace linnet::server {
namespace {

// Once an engine call takes this long (some milliseconds are usual), snapshot requests are answered
// without waiting for its end.
constexpr absl::Duration kLongCall = absl::Seconds(2);
// Retry delay after an engine has failed for good: the time in which the process is restarted.
constexpr absl::Duration kProcessRestart = absl::Seconds(5);

using State = EngineHealth::State;

}  // namespace

Scheduler::Scheduler(EngineFactory factory, const BatcherOptions& options, Observer observer,
                     const Supervision& supervision, const std::string& model,
                     const LoadOnDemand& demand)
    : factory_(std::move(factory)),
      options_(options),
      observer_(std::move(observer)),
      supervision_(supervision),
      model_(model),
      demand_(demand),
      restarts_(supervision.max_failed_rebuilds) {
  if (supervision_.supervisor != nullptr) supervision_.supervisor->Add(*this);
  try {
    thread_ = std::thread([this] {
      Run();
      MutexLock lock(mu_);
      ended_ = true;
      changed_.NotifyAll();
    });
  } catch (...) {  // the destructor will not run
    if (supervision_.supervisor != nullptr) supervision_.supervisor->Remove(*this);
    throw;
  }
}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Start(
    EngineFactory factory, const BatcherOptions& options, Observer observer,
    const Supervision& supervision, const std::string& model, const LoadOnDemand& demand) {
  std::unique_ptr<Scheduler> scheduler(
      new Scheduler(std::move(factory), options, std::move(observer), supervision, model, demand));
  Scheduler& self = *scheduler;
  MutexLock lock(self.mu_);
  while (!self.started_.has_value()) self.changed_.Wait(self.mu_);
  if (!self.started_->ok()) return *self.started_;
  return scheduler;
}

Scheduler::~Scheduler() {
  Stop(MonotonicTime::max());
  thread_.join();
  if (supervision_.supervisor != nullptr) supervision_.supervisor->Remove(*this);
}

bool Scheduler::Stop(MonotonicTime deadline) {
  MutexLock lock(mu_);
  Enter(Phase::kStopping);
  while (!ended_ && changed_.WaitUntil(mu_, deadline)) {
  }
  return ended_;
}

void Scheduler::Enter(Phase phase) {
  phase_ = std::max(phase_, phase);
  changed_.NotifyAll();
}

absl::Status Scheduler::Submit(std::vector<std::unique_ptr<Sequence>>& sequences) {
  for (const auto& sequence : sequences) {
    RETURN_IF_ERROR(Check(sequence->input));
  }
  const absl::Time now = absl::Now();
  {
    MutexLock lock(mu_);
    if (phase_ != Phase::kServing) return ShuttingDown();
    if (health_.state == State::kFailed) return EngineDown(kProcessRestart);
    if (next_load_.has_value()) {
      const absl::Duration left = Elapsed(MonotonicNow(), *next_load_);
      if (left > absl::ZeroDuration()) return EngineDown(std::max(left, absl::Seconds(1)));
      next_load_.reset();
      health_.state = State::kUp;
    }
    if (health_.state == State::kDown) return EngineDown(absl::Seconds(1));
    last_used_ = MonotonicNow();
    // Reserve first: if there is no memory, none of the sequences is taken.
    if (const size_t size = inbox_.size() + sequences.size(); size > inbox_.capacity())
      inbox_.reserve(std::max(size, 2 * inbox_.capacity()));
    for (auto& sequence : sequences) {
      sequence->times.submitted = now;
      sequence->accepted = true;
      inbox_.push_back(std::move(sequence));
    }
    // Notify under the lock: once it is released, the sequences may end, and the owner of this
    // scheduler may destroy it.
    changed_.NotifyAll();
  }
  sequences.clear();
  return absl::OkStatus();
}

void Scheduler::Drain(MonotonicTime deadline) {
  bool loading = false;
  {
    MutexLock lock(mu_);
    Enter(Phase::kDraining);
    while (!empty() && changed_.WaitUntil(mu_, deadline)) {
    }
    if (empty()) return;
    Enter(Phase::kEnding);  // all sequences end after the current step at the latest
    loading = loads_.state == LoadState::kLoading;
  }
  if (loading) EndInbox(ShuttingDown());  // a load may take minutes
  MutexLock lock(mu_);
  while (!empty()) changed_.Wait(mu_);
}

EngineHealth Scheduler::health() const {
  MutexLock lock(mu_);
  EngineHealth health = health_;
  // The next sequence loads the engine again.
  if (next_load_.has_value() && *next_load_ <= MonotonicNow()) health.state = State::kUp;
  return health;
}

std::optional<EngineFailure> Scheduler::failure() const {
  MutexLock lock(mu_);
  if (health_.state != State::kFailed) return std::nullopt;
  return EngineFailure{model_, health_.why, failed_requests_};
}

void Scheduler::ShowBatch(int max, SnapshotCallback callback) {
  {
    MutexLock lock(mu_);
    if (phase_ != Phase::kStopping && health_.state == State::kUp) {
      snapshot_requests_.push_back({max, std::move(callback)});
      changed_.NotifyAll();
      return;
    }
  }
  callback({});
}

void Scheduler::Maintain(MonotonicTime now) {
  if (load_stats().state == LoadState::kLoading) EndUnwanted();
  const absl::Duration in_call_for = detector_.in_call_for(now);
  if (in_call_for < kLongCall && health().state != State::kFailed) return;
  for (SnapshotRequest& request : TakeSnapshotRequests())
    request.callback({.in_call_for = in_call_for});
}

std::vector<Scheduler::SnapshotRequest> Scheduler::TakeSnapshotRequests() {
  MutexLock lock(mu_);
  return std::exchange(snapshot_requests_, {});
}

void Scheduler::EndIfStalled(MonotonicTime now) noexcept {
  const absl::Duration in_call_for = detector_.in_call_for(now);
  // From here on this thread owns engine and batcher: when the stalled call returns, Watch throws
  // StalledCall and the scheduler's thread does not touch them again.
  if (!detector_.DeclareStalled(now)) return;
  FailForGood([&] {
    return absl::UnavailableError(
        absl::StrCat("the engine did not return from a call for ",
                     absl::FormatDuration(absl::Trunc(in_call_for, absl::Milliseconds(1)))));
  });
}

void Scheduler::FailForGood(absl::FunctionRef<absl::Status()> describe) noexcept {
  // These need no memory: the state is set in any case, because the process ends by it.
  absl::Status why(absl::StatusCode::kInternal, "");
  absl::Status running = why;
  absl::Status waiting(absl::StatusCode::kUnavailable, "");
  std::vector<std::string> request_ids;
  try {
    why = describe();
    // INTERNAL for the running sequences: one of them may be the cause, so clients must not retry
    // them on another server.
    running = absl::InternalError(why.message());
    waiting = EngineDown(kProcessRestart);
    if (batcher_ != nullptr) request_ids = batcher_->RunningRequests();
  } catch (...) {
  }
  SetDown(State::kFailed, why, std::move(request_ids));
  bool ended = false;
  // An attempt without memory may end some of them, and the next one ends the rest.
  for (int attempt = 0; !ended && attempt < 3; ++attempt) {
    try {
      EndAll(running, waiting);
      ended = true;
    } catch (...) {
      LogException("sequences_not_ended");
    }
  }
  MutexLock lock(mu_);
  idle_ = true;
  if (!started_.has_value()) started_ = why;
  changed_.NotifyAll();
}

void Scheduler::Run() {
  pthread_setname_np(pthread_self(), "linnet-engine");  // for top -H, and to pin it to a core
  try {
    const absl::Status status = TryBuildFirst();
    {
      MutexLock lock(mu_);
      started_ = status;
      changed_.NotifyAll();
    }
    if (status.ok()) {
      Serve();
      EndAll(ShuttingDown(), ShuttingDown());
      for (SnapshotRequest& request : TakeSnapshotRequests()) request.callback({});
    }
  } catch (const StalledCall&) {
    // EndIfStalled has ended all sequences.
  } catch (...) {
    FailForGood([&] {
      const std::string why = ExceptionMessage();
      Log(LogLevel::kError, "engine_thread_failed", {{"model", model_}, {"why", why}});
      return absl::InternalError(absl::StrCat("the thread of the engine threw: ", why));
    });
  }
  if (engine_ != nullptr) {
    {
      // Keep an engine that has failed for good until the destructor runs.
      MutexLock lock(mu_);
      while (phase_ != Phase::kStopping) changed_.Wait(mu_);
    }
    engine_->Remove();  // on the thread that made it
  }
  if (demand_.memory != nullptr) demand_.memory->Release(*this);
}

absl::StatusOr<std::unique_ptr<model::Engine>> Scheduler::Build() {
  using Built = absl::StatusOr<std::unique_ptr<model::Engine>>;
  return detector_.Watch(supervision_.load_timeout, [this]() -> Built {
    // Destroy the old engine first: the device may not have memory for two.
    if (engine_ != nullptr) engine_->Remove();
    try {
      return factory_();
    } catch (...) {
      return absl::InternalError(absl::StrCat("building the engine threw: ", ExceptionMessage()));
    }
  });
}

absl::Status Scheduler::TryBuildFirst() {
  try {
    return BuildFirst();
  } catch (const StalledCall&) {
    throw;
  } catch (...) {  // that model is not loaded
    return absl::InternalError(absl::StrCat("loading the model threw: ", ExceptionMessage()));
  }
}

absl::Status Scheduler::BuildFirst() {
  const bool later = demand_.memory != nullptr && !demand_.pinned;
  if (later) {
    engine_ = std::make_unique<GuardedEngine>(demand_.info, detector_, supervision_.stall_timeout);
    MutexLock lock(mu_);
    loads_.state = LoadState::kAvailable;
  } else {
    // A pinned engine is loaded even if there is no room: others make room when they are needed.
    const MonotonicTime before = MonotonicNow();
    ASSIGN_OR_RETURN(std::unique_ptr<model::Engine> engine, BuildMeasured());
    Loaded(before);
    engine_ =
        std::make_unique<GuardedEngine>(std::move(engine), detector_, supervision_.stall_timeout);
  }
  batcher_ = std::make_unique<Batcher>(*engine_, options_);
  return absl::OkStatus();
}

void Scheduler::Serve() {
  while (true) {
    std::vector<std::unique_ptr<Sequence>> taken;
    std::vector<SnapshotRequest> snapshot_requests;
    Phase phase;
    bool load, unload;
    {
      MutexLock lock(mu_);
      idle_ = batcher_->idle();
      if (idle_) changed_.NotifyAll();
      while (idle_ && inbox_.empty() && snapshot_requests_.empty() && !unload_ &&
             phase_ != Phase::kStopping)
        changed_.Wait(mu_);
      snapshot_requests = std::exchange(snapshot_requests_, {});
      // Sequences that came after the request keep the engine.
      unload = std::exchange(unload_, false) && idle_ && inbox_.empty() &&
               loads_.state == LoadState::kLoaded;
      load = loads_.state != LoadState::kLoaded && !inbox_.empty() && phase_ < Phase::kEnding;
      if (!load) taken = std::exchange(inbox_, {});
      idle_ = batcher_->idle() && taken.empty();
      phase = phase_;
    }
    for (auto& sequence : taken) {
      if (absl::Status status = batcher_->Add(sequence, absl::Now()); !status.ok()) {
        sequence->End(std::move(status));
      }
    }
    for (SnapshotRequest& request : snapshot_requests)
      request.callback(batcher_->Snapshot(request.max));
    if (phase >= Phase::kEnding) EndAll(ShuttingDown(), ShuttingDown());
    if (phase == Phase::kStopping) return;
    if (unload) UnloadNow();
    if (load && !Load()) return;
    if (batcher_->idle()) {
      const StepReport report = batcher_->TakeReport();
      if (report.finished > 0 && observer_) observer_(report, absl::ZeroDuration());
      continue;
    }
    if (!Step()) return;
  }
}

bool Scheduler::Step() {
  const MonotonicTime before = MonotonicNow();
  StepReport report = batcher_->Step([] { return absl::Now(); });
  if (observer_) observer_(report, Elapsed(before, MonotonicNow()));
  if (!engine_->broken().ok()) return Rebuild(engine_->broken(), std::move(report.failed_requests));
  if (report.stepped) restarts_.Stepped();
  return true;
}

bool Scheduler::Rebuild(absl::Status why, std::vector<std::string> request_ids) {
  while (true) {
    const bool for_good = model::IsDeviceLost(why) || restarts_.give_up();
    const absl::Duration delay = for_good ? kProcessRestart : restarts_.Failed(MonotonicNow());
    const absl::Status status = EngineDown(std::max(delay, absl::Seconds(1)));
    const MonotonicTime next_attempt = After(MonotonicNow(), delay);
    SetDown(for_good ? State::kFailed : State::kDown, why, request_ids);
    EndAll(status, status);
    for (SnapshotRequest& request : TakeSnapshotRequests()) request.callback({});
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
    restarts_.Rebuilding();
    absl::StatusOr<std::unique_ptr<model::Engine>> engine = Build();
    why = engine.status();
    if (!engine.ok()) continue;
    engine_->Replace(*std::move(engine));
    MutexLock lock(mu_);
    health_.state = State::kUp;
    ++health_.restarts;
    return true;
  }
}

void Scheduler::EndAll(const absl::Status& running, const absl::Status& waiting) {
  EndInbox(waiting);
  if (batcher_ != nullptr) {
    StepReport report;
    report.failed = batcher_->sequences();
    batcher_->EndAll(running, waiting);
    if (report.failed > 0 && observer_) observer_(report, absl::ZeroDuration());
  }
  MutexLock lock(mu_);
  idle_ = true;
  changed_.NotifyAll();
}

void Scheduler::EndInbox(const absl::Status& status) {
  std::vector<std::unique_ptr<Sequence>> inbox;
  {
    MutexLock lock(mu_);
    inbox = std::exchange(inbox_, {});
  }
  StepReport report;
  report.failed = static_cast<int>(inbox.size());
  for (auto& sequence : inbox) sequence->End(status);
  if (report.failed > 0 && observer_) observer_(report, absl::ZeroDuration());
}

void Scheduler::SetDown(State state, const absl::Status& why,
                        std::vector<std::string> request_ids) {
  MutexLock lock(mu_);
  health_.state = state;
  health_.why = why;
  failed_requests_ = std::move(request_ids);
}

}  // namespace linnet::server
