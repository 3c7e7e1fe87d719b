#include "server/schedule/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/log.h"

namespace linnet::server {
namespace {

// A call of the engine is usually some milliseconds, and who wants a picture does not want to wait.
constexpr absl::Duration kLongCall = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Start(EngineFactory factory,
                                                            const BatcherOptions& options,
                                                            Observer observer) {
  std::unique_ptr<Scheduler> scheduler(
      new Scheduler(std::move(factory), options, std::move(observer)));
  Scheduler& self = *scheduler;
  const auto worker = std::make_shared<Worker>();
  self.StartThread(worker, /*first=*/true);
  MutexLock lock(self.mu_);
  self.worker_ = worker;
  while (!self.started_.has_value()) self.changed_.Wait(self.mu_);
  if (!self.started_->ok()) return *self.started_;
  return scheduler;
}

Scheduler::~Scheduler() {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    MutexLock lock(mu_);
    draining_ = ending_ = stopping_ = true;
    workers = std::exchange(abandoned_, {});
    workers.push_back(worker_);
  }
  changed_.NotifyAll();
  for (const auto& worker : workers) worker->thread.join();
}

std::shared_ptr<Scheduler::Worker> Scheduler::worker() const {
  MutexLock lock(mu_);
  return worker_;
}

absl::Status Scheduler::Check(const model::SequenceInput& input) const {
  return worker()->engine->Check(input);
}

absl::Status Scheduler::Submit(std::vector<std::unique_ptr<Sequence>>& sequences) {
  const std::shared_ptr<Worker> worker = this->worker();
  for (const auto& sequence : sequences) {
    if (absl::Status status = worker->engine->Check(sequence->input); !status.ok()) return status;
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
    if (changed_.WaitUntil(mu_, ending_ ? absl::InfiniteFuture() : deadline)) continue;
    ending_ = true;  // at the latest after the step that runs now, all of it has ended
    changed_.NotifyAll();
  }
}

EngineHealth Scheduler::health() const {
  MutexLock lock(mu_);
  EngineHealth health = health_;
  health.abandoned = static_cast<int>(abandoned_.size());
  return health;
}

bool Scheduler::stuck() const {
  const EngineHealth health = this->health();
  return health.state == EngineHealth::State::kStuck || health.abandoned > 0;
}

void Scheduler::ShowBatch(int most, PictureTaker taker) {
  {
    MutexLock lock(mu_);
    if (!stopping_ && health_.state == EngineHealth::State::kUp) {
      orders_.push_back({most, std::move(taker)});
      changed_.NotifyAll();
      return;
    }
  }
  taker({});
}

std::vector<Scheduler::PictureOrder> Scheduler::TakeOrders() {
  MutexLock lock(mu_);
  return std::exchange(orders_, {});
}

void Scheduler::Watch(absl::Time now, absl::Duration patience, int most_abandoned) {
  Reap();
  const std::shared_ptr<Worker> worker = this->worker();
  if (const absl::Duration in_call_for = now - worker->engine->entered();
      in_call_for >= kLongCall) {
    for (PictureOrder& order : TakeOrders()) order.taker({.in_call_for = in_call_for});
  }
  std::vector<std::unique_ptr<Sink>> sinks;
  std::vector<std::unique_ptr<Sequence>> inbox;
  std::shared_ptr<Worker> next;
  const bool stuck = worker->engine->GiveUpIfStuck(now - patience, [&] {
    sinks = worker->batcher->TakeSinks();
    MutexLock lock(mu_);
    health_.why = absl::UnavailableError("the engine does not answer");
    inbox = std::exchange(inbox_, {});
    if (std::ssize(abandoned_) < most_abandoned && !stopping_) {
      next = std::make_shared<Worker>();
      next->engine = std::make_unique<GuardedEngine>(info_);
      next->batcher = std::make_unique<Batcher>(*next->engine, options_);
      worker->abandoned = true;
      abandoned_.push_back(std::exchange(worker_, next));
      health_.state = EngineHealth::State::kDown;
      idle_ = true;
    } else {
      health_.state = EngineHealth::State::kStuck;
    }
    changed_.NotifyAll();
  });
  if (!stuck) return;
  Log(LogLevel::kError, "engine_stuck",
      {{"seconds", absl::ToDoubleSeconds(patience)},
       {"sequences", sinks.size() + inbox.size()},
       {"abandoned", next == nullptr ? "no" : "yes"}});
  if (observer_) {
    StepReport lost;
    lost.failed = static_cast<int>(sinks.size() + inbox.size());
    observer_(lost, absl::ZeroDuration());
  }
  for (auto& sink : sinks) sink->Done(EngineDown(patience));
  for (auto& sequence : inbox) sequence->sink->Done(EngineDown(patience));
  if (next != nullptr) StartThread(next, /*first=*/false);
}

void Scheduler::Reap() {
  std::vector<std::shared_ptr<Worker>> ended;
  {
    MutexLock lock(mu_);
    const auto first = std::partition(abandoned_.begin(), abandoned_.end(),
                                      [](const auto& worker) { return !worker->ended; });
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(abandoned_.end()));
    abandoned_.erase(first, abandoned_.end());
  }
  for (const auto& worker : ended) {
    worker->thread.join();
    Log(LogLevel::kWarning, "engine_returned", {});
  }
}

void Scheduler::StartThread(const std::shared_ptr<Worker>& worker, bool first) {
  // The thread is joined before the worker is let go.
  worker->thread = std::thread([this, &worker = *worker, first] {
    pthread_setname_np(pthread_self(), "linnet-engine");  // for top -H, and to pin it to a core
    if (first) {
      const absl::Status status = MakeFirst(worker);
      {
        MutexLock lock(mu_);
        started_ = status;
        changed_.NotifyAll();
      }
      if (!status.ok()) return;
      Serve(worker);
    } else if (Restart(worker, absl::UnavailableError("the one before does not answer"))) {
      Serve(worker);
    }
    Leave(worker);
  });
}

absl::Status Scheduler::MakeFirst(Worker& worker) {
  absl::StatusOr<std::unique_ptr<model::Engine>> engine = factory_();
  if (!engine.ok()) return engine.status();
  info_ = (*engine)->info();
  worker.engine = std::make_unique<GuardedEngine>(info_, *std::move(engine));
  worker.batcher = std::make_unique<Batcher>(*worker.engine, options_);
  return absl::OkStatus();
}

void Scheduler::Leave(Worker& worker) {
  std::vector<std::unique_ptr<Sequence>> inbox;
  std::vector<PictureOrder> orders;
  {
    MutexLock lock(mu_);
    if (!worker.abandoned) {  // else they are the next one's
      inbox = std::exchange(inbox_, {});
      orders = std::exchange(orders_, {});
    }
  }
  for (PictureOrder& order : orders) order.taker({});
  for (auto& sequence : inbox) sequence->sink->Done(ShuttingDown());
  EndAll(worker, ShuttingDown());
  worker.engine->Remove();  // on the thread that made it
  MutexLock lock(mu_);
  worker.ended = true;
}

void Scheduler::Serve(Worker& worker) {
  Batcher& batcher = *worker.batcher;
  while (true) {
    std::vector<std::unique_ptr<Sequence>> newcomers;
    std::vector<PictureOrder> orders;
    bool ending, stopping;
    {
      MutexLock lock(mu_);
      idle_ = batcher.idle();
      if (idle_) changed_.NotifyAll();
      while (idle_ && inbox_.empty() && orders_.empty() && !stopping_) changed_.Wait(mu_);
      orders = std::exchange(orders_, {});
      newcomers = std::exchange(inbox_, {});
      idle_ = batcher.idle() && newcomers.empty();
      ending = ending_;
      stopping = stopping_;
    }
    for (auto& newcomer : newcomers) {
      if (absl::Status status = batcher.Add(newcomer, absl::Now()); !status.ok()) {
        newcomer->sink->Done(std::move(status));
      }
    }
    for (PictureOrder& order : orders) order.taker(batcher.Picture(order.most));
    if (ending) EndAll(worker, ShuttingDown());
    if (stopping) return;
    if (batcher.idle()) continue;
    const absl::Time before = absl::Now();
    const StepReport report = batcher.Step([] { return absl::Now(); });
    if (observer_ && !worker.engine->given_up()) observer_(report, absl::Now() - before);
    if (!worker.engine->broken().ok() && !Restart(worker, worker.engine->broken())) return;
  }
}

bool Scheduler::Restart(Worker& worker, absl::Status why) {
  while (true) {
    absl::Duration delay;
    {
      MutexLock lock(mu_);
      if (worker.abandoned) return false;
      delay = restarts_.Failed(absl::Now());
      health_.why = why;
    }
    Log(LogLevel::kError, "engine_failed",
        {{"why", why.ToString()}, {"restart_in_seconds", absl::ToDoubleSeconds(delay)}});
    worker.engine->Remove();  // first: there may not be memory for two
    if (delay > absl::ZeroDuration()) GoDown(worker, delay);
    {
      const absl::Time then = absl::Now() + delay;
      MutexLock lock(mu_);
      while (!stopping_ && delay > absl::ZeroDuration() && changed_.WaitUntil(mu_, then)) {
      }
      if (stopping_) return false;
    }
    absl::StatusOr<std::unique_ptr<model::Engine>> engine = factory_();
    why = engine.status();
    if (!engine.ok()) continue;
    worker.engine->Replace(*std::move(engine));
    MutexLock lock(mu_);
    health_.state = EngineHealth::State::kUp;
    ++health_.restarts;
    return true;
  }
}

void Scheduler::EndAll(Worker& worker, const absl::Status& status) {
  const bool empty = worker.batcher->idle();
  worker.batcher->EndAll(status, absl::Now());
  if (!empty && observer_ && !worker.engine->given_up())
    observer_(StepReport{}, absl::ZeroDuration());
}

void Scheduler::GoDown(Worker& worker, absl::Duration retry) {
  std::vector<std::unique_ptr<Sequence>> inbox;
  {
    MutexLock lock(mu_);
    health_.state = EngineHealth::State::kDown;
    inbox = std::exchange(inbox_, {});
  }
  for (auto& sequence : inbox) sequence->sink->Done(EngineDown(retry));
  for (PictureOrder& order : TakeOrders()) order.taker({});
  EndAll(worker, EngineDown(retry));
  MutexLock lock(mu_);
  idle_ = true;
  changed_.NotifyAll();
}

}  // namespace linnet::server
