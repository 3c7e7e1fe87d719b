#pragma once

#include <atomic>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "tests/support/echo_engine.h"

// A fake engine with injected faults of every kind.
namespace linnet::server {

// Controls the faults of all engines of a server, and counts engines and leaked sequences. Outlives
// the engines' threads. Thread-safe.
class FaultPlan {
 public:
  // `on`: faults are injected. `stalls`: engines may stall too; then their model is no longer
  // served.
  FaultPlan(bool on, bool stalls) : stalls(stalls), on_(on) {}

  bool on() const { return on_; }
  // Blocks until Free is called.
  void Stall() {
    MutexLock lock(mu_);
    ++stalled_;
    const int own = freed_;
    while (freed_ == own && !over_) changed_.Wait(mu_);
  }
  void Free(bool for_good = false) {
    MutexLock lock(mu_);
    ++freed_;
    over_ |= for_good;
    changed_.NotifyAll();
  }
  int stalled() {
    MutexLock lock(mu_);
    return stalled_;
  }

  const bool stalls;
  std::atomic<unsigned> seed = 0;
  std::atomic<int> alive = 0;
  std::atomic<int> left_behind = 0;  // sequences left in engines that were destroyed unbroken

 private:
  const bool on_;
  Mutex mu_;
  CondVar changed_;
  int freed_ ABSL_GUARDED_BY(mu_) = 0;
  int stalled_ ABSL_GUARDED_BY(mu_) = 0;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

// Stall timeout of servers whose engines stall.
constexpr absl::Duration kStallTimeout = absl::Milliseconds(20);

// An echo engine that appends a token for its model's version to every answer, and fails at random
// as FaultPlan allows.
class FaultInjectionEngine final : public test::EchoEngine {
 public:
  FaultInjectionEngine(FaultPlan& plan, const Options& options, model::TokenId signature)
      : EchoEngine(options), plan_(plan), signature_(signature), random_(plan.seed.fetch_add(1)) {
    ++plan_.alive;
  }
  ~FaultInjectionEngine() override {
    if (!broken_) plan_.left_behind += sequences();
    --plan_.alive;
  }

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    const Timer timer(*this);
    if (Chance(0.01)) Throw("while it encodes");
    if (Chance(0.03)) return absl::ResourceExhaustedError("out of memory");
    if (Chance(0.01)) return absl::InternalError("the encoder failed");
    return EchoEngine::Add(inputs);
  }

  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    const Timer timer(*this);
    if (Chance(0.02)) absl::SleepFor(absl::Microseconds(random_() % 2000));
    if (Chance(0.004)) Throw("in a step");
    if (plan_.stalls && Chance(0.002)) plan_.Stall();
    const bool fails = Chance(0.003), no_memory = Chance(0.003);
    auto events = EchoEngine::Step();
    if (!events.ok()) return events;
    if (fails || no_memory) {
      ReleaseAll();
      if (no_memory) return absl::ResourceExhaustedError("out of memory");
      return absl::InternalError("the device is lost");
    }
    for (model::SequenceEvent& event : *events) {
      if (!event.finished && Chance(0.002)) {
        Release(event.id);
        event.finished = true;
        event.status = absl::InternalError("a row of logits is not a number");
      }
      for (model::Hypothesis& hypothesis : event.hypotheses) {
        hypothesis.tokens.insert(hypothesis.tokens.end() - 1, signature_);
        hypothesis.token_scores.push_back(-0.5f);
      }
    }
    return events;
  }

 private:
  // Marks the engine as broken after a call that a busy machine made slow enough to count as a
  // stall: its sequences are not released then.
  class Timer {
   public:
    explicit Timer(FaultInjectionEngine& fake) : fake_(fake) {}
    ~Timer() {
      if (absl::Now() - begin_ >= kStallTimeout / 2) fake_.broken_ = true;
    }

   private:
    FaultInjectionEngine& fake_;
    const absl::Time begin_ = absl::Now();
  };

  bool Chance(double share) {
    return plan_.on() && std::uniform_real_distribution<double>()(random_) < share;
  }
  void Throw(const char* when) {
    broken_ = true;
    throw std::runtime_error(when);
  }

  FaultPlan& plan_;
  const model::TokenId signature_;
  std::mt19937 random_;
  bool broken_ = false;
};

}  // namespace linnet::server
