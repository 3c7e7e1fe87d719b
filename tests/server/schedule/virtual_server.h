#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/schedule/batcher.h"
#include "server/schedule/restart_policy.h"
#include "tests/support/echo_engine.h"

// Models on a virtual clock: single-threaded counterparts of Scheduler and Catalog, driven by the
// test.
namespace linnet::server {

// Fault rates of a fake engine, as a part of its calls.
struct FaultRates {
  double out_of_memory = 0.002;  // encoder calls and steps
  double encoder = 0.001;
  double step = 0.0003;  // breaks the engine
  double row = 0.0003;   // fails one sequence
  double factory = 0.3;  // rebuilds that fail
};

class FaultyEngine final : public test::EchoEngine {
 public:
  FaultyEngine(const Options& options, const FaultRates& rates, std::mt19937& random)
      : EchoEngine(options), rates_(rates), random_(random) {}

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    if (Chance(rates_.out_of_memory)) return absl::ResourceExhaustedError("out of memory");
    if (Chance(rates_.encoder)) return absl::InternalError("the encoder failed");
    return EchoEngine::Add(inputs);
  }
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    auto events = EchoEngine::Step();
    if (!events.ok()) return events;
    const bool failed = Chance(rates_.step), no_memory = Chance(rates_.out_of_memory);
    if (failed || no_memory) {
      for (const auto& event : *events) Release(event.id);
      broken_ = failed;
      if (failed) return absl::InternalError("the device is lost");
      return absl::ResourceExhaustedError("out of memory");
    }
    for (model::SequenceEvent& event : *events) {
      if (event.finished || !Chance(rates_.row)) continue;
      Release(event.id);
      event.finished = true;
      event.status = absl::InternalError("a row of logits is not a number");
    }
    return events;
  }
  bool broken() const { return broken_; }

 private:
  bool Chance(double share) { return static_cast<double>(random_()) < share * 4294967296.0; }

  const FaultRates rates_;
  std::mt19937& random_;
  bool broken_ = false;
};

// One version of a model: a fake engine, its batcher and its supervision.
class VirtualModel {
 public:
  struct Options {
    test::EchoEngine::Options engine;
    BatcherOptions batcher;
    FaultRates faults;
    // Duration of a step with all rows: half is fixed, half in proportion to the rows.
    absl::Duration full_step = absl::Milliseconds(8);
  };

  VirtualModel(std::string name, const Options& options, Admission& admission, std::mt19937& random)
      : name_(std::move(name)), options_(options), admission_(admission), random_(random) {
    MakeEngine();
  }

  const std::string& name() const { return name_; }
  bool up(absl::Time now) const { return now >= down_until_; }
  bool idle() const { return batcher_->idle(); }
  bool retired() const { return retired_; }
  // Marks it as replaced by another version: it gets no new calls.
  void Retire() { retired_ = true; }
  void SetSlowdown(double times) { slowdown_ = times; }

  absl::Status Submit(std::unique_ptr<Sequence>& sequence, absl::Time now) {
    if (!up(now)) return EngineDown(down_until_ - now);
    absl::Status status = batcher_->Add(sequence, now);
    if (status.ok() && next_step_ == absl::InfiniteFuture()) next_step_ = now + StepTime();
    return status;
  }
  // Time of the next step or restart.
  absl::Time next_event() const { return std::min(next_step_, restart_); }
  void Act(absl::Time now) {
    if (restart_ <= now) {
      restart_ = absl::InfiniteFuture();
      Restart(now);
    }
    if (next_step_ <= now) Step(now);
  }
  // Ends all sequences, as Scheduler does at the end of a drain.
  void EndAll() { batcher_->EndAll(ShuttingDown(), ShuttingDown()); }
  int left_in_engine() const { return engine_->sequences(); }
  int restarts() const { return restarts_; }

  // Reports steps like those of WarmUp: of one sequence, and of as many as the engine has rows for.
  void WarmUp(absl::Time now) {
    for (const int rows : {5, options_.engine.rows}) {
      for (int i = 0; i < 16; ++i) {
        const StepReport report = {.rows = rows,
                                   .finished_tokens = i == 15 ? 58 : 0,
                                   .finished_steps = i == 15 ? 16 : 0,
                                   .rows_limit = options_.engine.rows,
                                   .stepped = true,
                                   .ended = now};
        admission_.StepMade(name_, report, TimeOf(rows));
      }
    }
  }

 private:
  static constexpr absl::Duration kProcessRestart = absl::Seconds(5);

  static MonotonicTime Monotonic(absl::Time now) {
    return MonotonicTime(absl::ToChronoNanoseconds(now - absl::UnixEpoch()));
  }
  absl::Duration TimeOf(int rows) const {
    return options_.full_step * slowdown_ * (0.5 + 0.5 * rows / options_.engine.rows);
  }
  absl::Duration StepTime() const {
    const int64_t wanted = engine_->rows_in_use() + int64_t{5} * batcher_->waiting();
    return TimeOf(static_cast<int>(std::min<int64_t>(options_.engine.rows, wanted)));
  }
  void MakeEngine() {
    batcher_ = nullptr;
    engine_ = std::make_unique<FaultyEngine>(options_.engine, options_.faults, random_);
    batcher_ = std::make_unique<Batcher>(*engine_, options_.batcher);
  }

  void Step(absl::Time now) {
    const absl::Duration cycle = StepTime();
    const StepReport report = batcher_->Step([now] { return now; });
    admission_.StepMade(name_, report, cycle);
    if (engine_->broken()) {
      Restart(now);
    } else if (report.stepped) {
      restarts_in_a_row_->Stepped();
    }
    next_step_ = batcher_->idle() ? absl::InfiniteFuture() : now + StepTime();
  }
  // Ends all sequences with a retry delay and rebuilds the engine, at once or later.
  void Restart(absl::Time now) {
    // After too many failures the process ends, and a new one starts some time later.
    const bool for_good = restarts_in_a_row_->give_up();
    const absl::Duration delay =
        for_good ? kProcessRestart : restarts_in_a_row_->Failed(Monotonic(now));
    if (for_good) restarts_in_a_row_.emplace();
    const absl::Status status = EngineDown(std::max(delay, absl::Seconds(1)));
    batcher_->EndAll(status, status);
    next_step_ = absl::InfiniteFuture();
    down_until_ = now + delay;
    restarts_in_a_row_->Rebuilding();
    const bool fails = static_cast<double>(random_()) < options_.faults.factory * 4294967296.0;
    if (delay > absl::ZeroDuration() && fails) {
      restart_ = down_until_;
      down_until_ = absl::InfiniteFuture();
      return;
    }
    MakeEngine();
    ++restarts_;
  }

  const std::string name_;
  const Options options_;
  Admission& admission_;
  std::mt19937& random_;
  std::unique_ptr<FaultyEngine> engine_;
  std::unique_ptr<Batcher> batcher_;
  std::optional<RestartPolicy> restarts_in_a_row_ = RestartPolicy();
  absl::Time next_step_ = absl::InfiniteFuture();  // end of the current step
  absl::Time restart_ = absl::InfiniteFuture();    // next attempt to rebuild the engine
  absl::Time down_until_ = absl::InfinitePast();
  double slowdown_ = 1;
  int restarts_ = 0;
  bool retired_ = false;
};

}  // namespace linnet::server
