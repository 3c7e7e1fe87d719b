#include "server/schedule/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"
#include "server/schedule/batcher.h"
#include "server/schedule/engine_memory.h"

namespace linnet::server {
namespace {

// Once an engine call takes this long (some milliseconds are usual), snapshot requests are answered
// without waiting for its end.
constexpr absl::Duration kLongCall = absl::Seconds(2);

using State = EngineHealth::State;

}  // namespace

Scheduler::Scheduler(EngineFactory factory, const BatcherOptions& options, Observer observer,
                     const Supervision& supervision, const std::string& model,
                     const LoadOnDemand& demand)
    : options_(options),
      observer_(std::move(observer)),
      supervisor_(supervision.supervisor),
      model_(model),
      demand_(demand),
      life_(std::move(factory), supervision) {
  if (supervisor_ != nullptr) supervisor_->Add(*this);
  try {
    thread_ = std::thread([this] {
      Run();
      MutexLock lock(mu_);
      ended_ = true;
      changed_.NotifyAll();
    });
  } catch (...) {  // the destructor will not run
    if (supervisor_ != nullptr) supervisor_->Remove(*this);
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
  if (supervisor_ != nullptr) supervisor_->Remove(*this);
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
    RETURN_IF_ERROR(status_.Use(MonotonicNow()));
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
    loading = status_.loads.state == LoadState::kLoading;
  }
  if (loading) EndInbox(ShuttingDown());  // a load may take minutes
  MutexLock lock(mu_);
  while (!empty()) changed_.Wait(mu_);
}

EngineHealth Scheduler::health() const {
  MutexLock lock(mu_);
  return status_.HealthAt(MonotonicNow());
}

std::optional<EngineFailure> Scheduler::failure() const {
  MutexLock lock(mu_);
  if (status_.health.state != State::kFailed) return std::nullopt;
  return EngineFailure{model_, status_.health.why, status_.failed_requests};
}

void Scheduler::ShowBatch(int max, BatchView::Callback callback) {
  {
    MutexLock lock(mu_);
    if (phase_ != Phase::kStopping && status_.health.state == State::kUp) {
      view_.Ask(max, std::move(callback));
      changed_.NotifyAll();
      return;
    }
  }
  callback({});
}

void Scheduler::Maintain(MonotonicTime now) {
  if (load_stats().state == LoadState::kLoading) EndUnwanted();
  const absl::Duration in_call_for = life_.detector().in_call_for(now);
  if (in_call_for < kLongCall && health().state != State::kFailed) return;
  view_.Answer([&](int) { return BatchSnapshot{.in_call_for = in_call_for}; });
}

void Scheduler::EndIfStalled(MonotonicTime now) noexcept {
  const absl::Duration in_call_for = life_.detector().in_call_for(now);
  // From here on this thread owns engine and batcher: when the stalled call returns, Watch throws
  // StalledCall and the scheduler's thread does not touch them again.
  if (!life_.detector().DeclareStalled(now)) return;
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
    waiting = EngineDown(EngineStatus::kProcessRestart);
    if (batcher_ != nullptr) request_ids = batcher_->RunningRequests();
  } catch (...) {
  }
  {
    MutexLock lock(mu_);
    status_.SetDown(State::kFailed, why, std::move(request_ids));
  }
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
      view_.AnswerEmpty();
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
  if (life_.engine() != nullptr) {
    // Keep an engine that has failed for good until the destructor runs.
    MutexLock lock(mu_);
    while (phase_ != Phase::kStopping) changed_.Wait(mu_);
  }
  life_.Remove();
  if (demand_.memory != nullptr) demand_.memory->Release(*this);
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

void Scheduler::WaitForWork() {
  {
    MutexLock lock(mu_);
    idle_ = batcher_->idle();
    if (idle_) changed_.NotifyAll();
    if (HasWork()) return;
  }
  // Without this lock: that of the supervisor is taken before it.
  if (supervisor_ != nullptr) supervisor_->SetIdle(*this, true);
  {
    MutexLock lock(mu_);
    while (!HasWork()) changed_.Wait(mu_);
  }
  if (supervisor_ != nullptr) supervisor_->SetIdle(*this, false);
}

void Scheduler::Serve() {
  while (true) {
    WaitForWork();
    std::vector<std::unique_ptr<Sequence>> taken;
    Phase phase;
    bool load, unload;
    {
      MutexLock lock(mu_);
      // Sequences that came after the request keep the engine.
      unload = std::exchange(unload_, false) && idle_ && inbox_.empty() &&
               status_.loads.state == LoadState::kLoaded;
      load =
          status_.loads.state != LoadState::kLoaded && !inbox_.empty() && phase_ < Phase::kEnding;
      if (!load) taken = std::exchange(inbox_, {});
      idle_ = batcher_->idle() && taken.empty();
      phase = phase_;
    }
    for (auto& sequence : taken) {
      if (absl::Status status = batcher_->Add(sequence, absl::Now()); !status.ok()) {
        sequence->End(std::move(status));
      }
    }
    view_.Answer([this](int max) { return batcher_->Snapshot(max); });
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
  if (const absl::Status& broken = life_.engine()->broken(); !broken.ok())
    return Rebuild(broken, std::move(report.failed_requests));
  if (report.stepped) life_.restarts().Stepped();
  return true;
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

}  // namespace linnet::server
