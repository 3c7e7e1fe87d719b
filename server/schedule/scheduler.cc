#include "server/schedule/scheduler.h"

#include <pthread.h>

#include <utility>

#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/log.h"

namespace linnet::server {
absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Start(EngineFactory factory,
                                                            const BatcherOptions& options,
                                                            Observer observer) {
  std::unique_ptr<Scheduler> scheduler(new Scheduler);
  Scheduler& self = *scheduler;
  self.thread_ =
      std::thread([&self, factory = std::move(factory), options, observer = std::move(observer)] {
        self.Run(factory, options, observer);
      });
  absl::Status status;
  {
    MutexLock lock(self.mu_);
    while (!self.started_.has_value()) self.changed_.Wait(self.mu_);
    status = *self.started_;
  }
  if (!status.ok()) return status;
  return scheduler;
}

Scheduler::~Scheduler() {
  {
    MutexLock lock(mu_);
    draining_ = abandoned_ = stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

absl::Status Scheduler::Check(const model::SequenceInput& input) const {
  return engine_->Check(input);
}

absl::Status Scheduler::Submit(std::vector<std::unique_ptr<Sequence>>& sequences) {
  for (const auto& sequence : sequences) {
    if (absl::Status status = Check(sequence->input); !status.ok()) return status;
  }
  const absl::Time now = absl::Now();
  {
    MutexLock lock(mu_);
    if (draining_) return ShuttingDown();
    if (health_.state != EngineHealth::State::kUp) return EngineDown(absl::Seconds(1));
    for (auto& sequence : sequences) {
      sequence->times.submitted = now;
      inbox_.push_back(std::move(sequence));
    }
    // Under the lock: once it is free, the sequences may end and with them whoever keeps this
    // scheduler alive.
    changed_.NotifyAll();
  }
  sequences.clear();
  return absl::OkStatus();
}

void Scheduler::Drain(absl::Time deadline) {
  MutexLock lock(mu_);
  draining_ = true;
  // What a stuck engine had has ended already.
  while (!((idle_ || health_.state == EngineHealth::State::kStuck) && inbox_.empty())) {
    if (changed_.WaitUntil(mu_, abandoned_ ? absl::InfiniteFuture() : deadline)) continue;
    abandoned_ = true;  // at the latest after the step that runs now, all of it has ended
    changed_.NotifyAll();
  }
}

EngineHealth Scheduler::health() const {
  MutexLock lock(mu_);
  return health_;
}

void Scheduler::Watch(absl::Time now, absl::Duration patience) {
  std::vector<std::unique_ptr<Sink>> sinks;
  std::vector<std::unique_ptr<Sequence>> inbox;
  const bool stuck = engine_->GiveUpIfStuck(now - patience, [&] {
    sinks = batcher_->TakeSinks();
    MutexLock lock(mu_);
    health_.state = EngineHealth::State::kStuck;
    health_.why = absl::UnavailableError("the engine does not answer");
    inbox = std::exchange(inbox_, {});
    changed_.NotifyAll();
  });
  if (!stuck) return;
  Log(LogLevel::kError, "engine_stuck",
      {{"seconds", absl::ToDoubleSeconds(patience)}, {"sequences", sinks.size()}});
  for (auto& sink : sinks) sink->Done(EngineDown(patience));
  for (auto& sequence : inbox) sequence->sink->Done(EngineDown(patience));
}

void Scheduler::Run(const EngineFactory& factory, const BatcherOptions& options,
                    const Observer& observer) {
  pthread_setname_np(pthread_self(), "linnet-engine");  // for top -H, and to pin it to a core
  absl::StatusOr<std::unique_ptr<model::Engine>> engine = factory();
  const absl::Status status = engine.status();
  if (status.ok()) {
    info_ = (*engine)->info();
    engine_ = std::make_unique<GuardedEngine>(*std::move(engine));
    batcher_ = std::make_unique<Batcher>(*engine_, options);
  }
  {
    MutexLock lock(mu_);
    started_ = status;
  }
  changed_.NotifyAll();
  if (!status.ok()) return;
  Serve(factory, observer);
  std::vector<std::unique_ptr<Sequence>> inbox;
  {
    MutexLock lock(mu_);
    inbox = std::exchange(inbox_, {});
  }
  for (auto& sequence : inbox) sequence->sink->Done(ShuttingDown());
  batcher_->EndAll(ShuttingDown(), absl::Now());
  engine_->Remove();  // on the thread that made it
}

void Scheduler::Serve(const EngineFactory& factory, const Observer& observer) {
  while (true) {
    std::vector<std::unique_ptr<Sequence>> newcomers;
    bool abandoned, stopping;
    {
      MutexLock lock(mu_);
      idle_ = batcher_->idle();
      if (idle_) changed_.NotifyAll();
      while (idle_ && inbox_.empty() && !stopping_) changed_.Wait(mu_);
      newcomers = std::exchange(inbox_, {});
      idle_ = batcher_->idle() && newcomers.empty();
      abandoned = abandoned_;
      stopping = stopping_;
    }
    for (auto& newcomer : newcomers) {
      if (absl::Status status = batcher_->Add(newcomer, absl::Now()); !status.ok()) {
        newcomer->sink->Done(std::move(status));
      }
    }
    if (abandoned) batcher_->EndAll(ShuttingDown(), absl::Now());
    if (stopping) return;
    if (batcher_->idle()) continue;
    const absl::Time before = absl::Now();
    const StepReport report = batcher_->Step([] { return absl::Now(); });
    if (observer) observer(report, absl::Now() - before);
    if (!engine_->broken().ok() && !Restart(factory)) return;
  }
}

bool Scheduler::Restart(const EngineFactory& factory) {
  absl::Status why = engine_->broken();
  while (true) {
    const absl::Duration delay = restarts_.Failed(absl::Now());
    Log(LogLevel::kError, "engine_failed",
        {{"why", why.ToString()}, {"restart_in_seconds", absl::ToDoubleSeconds(delay)}});
    engine_->Remove();  // first: there may not be memory for two
    if (delay > absl::ZeroDuration()) GoDown(delay);
    {
      const absl::Time then = absl::Now() + delay;
      MutexLock lock(mu_);
      health_.why = why;
      while (!stopping_ && delay > absl::ZeroDuration() && changed_.WaitUntil(mu_, then)) {
      }
      if (stopping_) return false;
    }
    absl::StatusOr<std::unique_ptr<model::Engine>> engine = factory();
    why = engine.status();
    if (!engine.ok()) continue;
    engine_->Replace(*std::move(engine));
    MutexLock lock(mu_);
    health_.state = EngineHealth::State::kUp;
    ++health_.restarts;
    return true;
  }
}

void Scheduler::GoDown(absl::Duration retry) {
  std::vector<std::unique_ptr<Sequence>> inbox;
  {
    MutexLock lock(mu_);
    health_.state = EngineHealth::State::kDown;
    inbox = std::exchange(inbox_, {});
  }
  for (auto& sequence : inbox) sequence->sink->Done(EngineDown(retry));
  batcher_->EndAll(EngineDown(retry), absl::Now());
  MutexLock lock(mu_);
  idle_ = true;
  changed_.NotifyAll();
}

}  // namespace linnet::server
