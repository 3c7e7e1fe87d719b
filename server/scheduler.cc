#include "server/scheduler.h"

#include <pthread.h>

#include <utility>

#include "absl/time/clock.h"
#include "server/errors.h"

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
  while (!(idle_ && inbox_.empty())) {
    if (changed_.WaitUntil(mu_, abandoned_ ? absl::InfiniteFuture() : deadline)) continue;
    abandoned_ = true;  // at the latest after the step that runs now, all of it has ended
    changed_.NotifyAll();
  }
}

void Scheduler::Run(const EngineFactory& factory, const BatcherOptions& options,
                    const Observer& observer) {
  pthread_setname_np(pthread_self(), "linnet-engine");  // for top -H, and to pin it to a core
  absl::StatusOr<std::unique_ptr<model::Engine>> engine = factory();
  if (engine.ok()) {
    info_ = (*engine)->info();
    engine_ = engine->get();
  }
  {
    MutexLock lock(mu_);
    started_ = engine.status();
  }
  changed_.NotifyAll();
  if (engine.ok()) Serve(**engine, options, observer);
}

void Scheduler::Serve(model::Engine& engine, const BatcherOptions& options,
                      const Observer& observer) {
  Batcher batcher(engine, options);
  while (true) {
    std::vector<std::unique_ptr<Sequence>> newcomers;
    bool abandoned, stopping;
    {
      MutexLock lock(mu_);
      idle_ = batcher.idle();
      if (idle_) changed_.NotifyAll();
      while (idle_ && inbox_.empty() && !stopping_) changed_.Wait(mu_);
      newcomers = std::exchange(inbox_, {});
      idle_ = batcher.idle() && newcomers.empty();
      abandoned = abandoned_;
      stopping = stopping_;
    }
    for (auto& newcomer : newcomers) {
      if (absl::Status status = batcher.Add(newcomer, absl::Now()); !status.ok()) {
        newcomer->sink->Done(std::move(status));
      }
    }
    if (abandoned) batcher.EndAll(ShuttingDown(), absl::Now());
    if (stopping) return;
    if (batcher.idle()) continue;
    const absl::Time before = absl::Now();
    const StepReport report = batcher.Step([] { return absl::Now(); });
    if (observer) observer(report, absl::Now() - before);
  }
}

}  // namespace linnet::server
