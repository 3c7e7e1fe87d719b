#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/schedule/batcher.h"
#include "server/schedule/guarded_engine.h"
#include "server/schedule/restart_policy.h"
#include "server/schedule/stall_detector.h"
#include "server/schedule/supervisor.h"
#include "tests/support/echo_engine.h"

// Models on a virtual clock, driven by the test in one thread: batcher, supervisor, stall detector,
// guard of the engine and restart policy are those of the server. VirtualModel mirrors Scheduler,
// which needs a thread.
namespace linnet::server {

// Virtual time. An engine that does not return from a call lets it pass, with all events of the
// simulation, among them the ticks of the supervisor.
struct VirtualClock {
  absl::Time now;
  // Lets time pass until the condition holds.
  std::function<void(absl::FunctionRef<bool()>)> pass_until;

  MonotonicTime monotonic() const {
    return MonotonicTime(absl::ToChronoNanoseconds(now - absl::UnixEpoch()));
  }
};

// Fault rates of a fake engine, as a part of its calls.
struct FaultRates {
  double out_of_memory = 0.002;  // encoder calls and steps
  double encoder = 0.001;
  double step = 0.0003;          // breaks the engine
  double row = 0.0003;           // fails one sequence
  double factory = 0.5;          // rebuilds that fail
  double stall = 0.00004;        // encoder calls and steps that do not return
  double load_stall = 0.03;      // rebuilds that do not return
  double device_lost = 0.00003;  // steps
};

class FaultyEngine final : public test::EchoEngine {
 public:
  // `stall` returns once the call was declared stalled.
  FaultyEngine(const Options& options, const FaultRates& rates, std::mt19937& random,
               std::function<void()> stall)
      : EchoEngine(options), rates_(rates), random_(random), stall_(std::move(stall)) {}

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    if (Chance(rates_.stall)) stall_();
    if (Chance(rates_.out_of_memory)) return absl::ResourceExhaustedError("out of memory");
    if (Chance(rates_.encoder)) return absl::InternalError("the encoder failed");
    return EchoEngine::Add(inputs);
  }
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    if (Chance(rates_.stall)) stall_();
    auto events = EchoEngine::Step();
    if (!events.ok()) return events;
    const bool lost = Chance(rates_.device_lost), failed = Chance(rates_.step);
    const bool no_memory = Chance(rates_.out_of_memory);
    if (lost || failed || no_memory) {
      ReleaseAll();
      if (lost) return model::DeviceLost(absl::InternalError("an illegal address"));
      if (failed) return absl::InternalError("the step failed");
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

 private:
  bool Chance(double share) { return static_cast<double>(random_()) < share * 4294967296.0; }

  const FaultRates rates_;
  std::mt19937& random_;
  const std::function<void()> stall_;
};

// One version of a model: a fake engine, its batcher and its supervision.
class VirtualModel final : public Supervised {
 public:
  struct Options {
    test::EchoEngine::Options engine;
    BatcherOptions batcher;
    FaultRates faults;
    absl::Duration stall_timeout = absl::Seconds(3);
    absl::Duration load_timeout = absl::Seconds(4);
    // Duration of a step with all rows: half is fixed, half in proportion to the rows.
    absl::Duration full_step = absl::Milliseconds(8);
  };
  // Counts since the model was made.
  struct Counts {
    int restarts = 0, stalls = 0, lost_devices = 0, given_up = 0;
    int failures() const { return stalls + lost_devices + given_up; }
  };

  // All but the options outlive the model.
  VirtualModel(std::string name, const Options& options, Admission& admission,
               Supervisor& supervisor, VirtualClock& clock, std::mt19937& random)
      : name_(std::move(name)),
        options_(options),
        admission_(admission),
        supervisor_(supervisor),
        clock_(clock),
        random_(random),
        engine_(MakeEngine(), detector_, options.stall_timeout),
        batcher_(engine_, options.batcher) {
    supervisor_.Add(*this);
  }
  ~VirtualModel() override { supervisor_.Remove(*this); }

  const std::string& name() const { return name_; }
  bool idle() const { return batcher_.idle() && inbox_.empty(); }
  bool in_call() const { return in_call_; }
  bool retired() const { return retired_; }
  // Marks it as replaced by another version: it gets no new calls.
  void Retire() { retired_ = true; }
  // Refuses new sequences, as Scheduler does in a drain.
  void Drain() { draining_ = true; }
  void SetSlowdown(double times) { slowdown_ = times; }

  absl::Status Submit(std::unique_ptr<Sequence>& sequence) {
    if (draining_) return ShuttingDown();
    if (failure_.has_value()) return EngineDown(kProcessRestart);
    if (down_) return EngineDown(absl::Seconds(1));
    if (in_call_) {
      inbox_.push_back(std::move(sequence));
      return absl::OkStatus();
    }
    absl::Status status = batcher_.Add(sequence, clock_.now);
    if (status.ok() && next_step_ == absl::InfiniteFuture()) next_step_ = clock_.now + StepTime();
    return status;
  }
  // Time of the next step or rebuild; infinite while a call does not return.
  absl::Time next_event() const {
    return in_call_ ? absl::InfiniteFuture() : std::min(next_step_, rebuild_);
  }
  void Act() {
    in_call_ = true;
    try {
      if (std::exchange(rebuild_, Later(rebuild_)) <= clock_.now) Rebuild();
      if (std::exchange(next_step_, Later(next_step_)) <= clock_.now) Step();
    } catch (const StalledCall&) {
      // EndIfStalled has ended all sequences.
    }
    in_call_ = false;
    for (auto& sequence : std::exchange(inbox_, {})) {
      if (absl::Status status = batcher_.Add(sequence, clock_.now); !status.ok())
        sequence->sink->Done(std::move(status));
    }
    if (!batcher_.idle() && next_step_ == absl::InfiniteFuture())
      next_step_ = clock_.now + StepTime();
  }

  void EndIfStalled(MonotonicTime now) override {
    if (!detector_.DeclareStalled(now)) return;
    ++counts_.stalls;
    const absl::Status why = absl::InternalError("the engine did not return from a call");
    failure_ = EngineFailure{name_, why, batcher_.RunningRequests()};
    EndAll(why, EngineDown(kProcessRestart));
  }
  void ForgiveGap(absl::Duration gap, MonotonicTime now) override { detector_.Forgive(gap, now); }
  std::optional<EngineFailure> failure() const override { return failure_; }

  // Ends all sequences, and a call that does not return, as the end of the process does.
  void Kill() {
    EndIfStalled(MonotonicTime::max());
    EndAll(ShuttingDown(), ShuttingDown());
  }
  // A stalled engine keeps its sequences.
  int left_in_engine() const { return detector_.stalled() ? 0 : engine_.sequences(); }
  const Counts& counts() const { return counts_; }

  // Reports steps like those of WarmUp: of one sequence, and of as many as the engine has rows for.
  void WarmUp() {
    for (const int rows : {5, options_.engine.rows}) {
      for (int i = 0; i < 16; ++i) {
        const StepReport report = {.rows = rows,
                                   .finished_tokens = i == 15 ? 58 : 0,
                                   .finished_steps = i == 15 ? 16 : 0,
                                   .rows_limit = options_.engine.rows,
                                   .stepped = true,
                                   .ended = clock_.now};
        admission_.StepMade(name_, report, TimeOf(rows));
      }
    }
  }

 private:
  static constexpr absl::Duration kProcessRestart = absl::Seconds(5);

  // The time of an event that is due is taken; that of a later one stays.
  absl::Time Later(absl::Time event) const {
    return event <= clock_.now ? absl::InfiniteFuture() : event;
  }
  absl::Duration TimeOf(int rows) const {
    return options_.full_step * slowdown_ * (0.5 + 0.5 * rows / options_.engine.rows);
  }
  absl::Duration StepTime() const {
    const int64_t wanted = engine_.rows_in_use() + int64_t{5} * batcher_.waiting();
    return TimeOf(static_cast<int>(std::min<int64_t>(options_.engine.rows, wanted)));
  }
  bool Chance(double share) { return static_cast<double>(random_()) < share * 4294967296.0; }
  void Stall() {
    clock_.pass_until([this] { return detector_.stalled(); });
  }
  std::unique_ptr<model::Engine> MakeEngine() {
    return std::make_unique<FaultyEngine>(options_.engine, options_.faults, random_,
                                          [this] { Stall(); });
  }

  void Step() {
    const absl::Duration cycle = StepTime();
    const StepReport report = batcher_.Step([this] { return clock_.now; });
    admission_.StepMade(name_, report, cycle);
    if (!engine_.broken().ok()) {
      Failed(engine_.broken());
    } else if (report.stepped) {
      restarts_.Stepped();
    }
  }
  // Ends all sequences, and rebuilds the engine at once or later unless it has failed for good.
  void Failed(const absl::Status& why) {
    const bool lost = model::IsDeviceLost(why);
    const bool for_good = lost || restarts_.give_up();
    const absl::Duration delay = for_good ? kProcessRestart : restarts_.Failed(clock_.monotonic());
    down_ = true;
    if (for_good) {
      failure_ = EngineFailure{name_, why, {}};
      ++(lost ? counts_.lost_devices : counts_.given_up);
    } else {
      rebuild_ = clock_.now + delay;
    }
    const absl::Status status = EngineDown(std::max(delay, absl::Seconds(1)));
    EndAll(status, status);
  }
  void Rebuild() {
    using Built = absl::StatusOr<std::unique_ptr<model::Engine>>;
    restarts_.Rebuilding();
    Built engine = detector_.Watch(options_.load_timeout, [this]() -> Built {
      engine_.Remove();
      if (Chance(options_.faults.load_stall)) Stall();
      if (Chance(options_.faults.factory)) return absl::InternalError("no memory on the device");
      return MakeEngine();
    });
    if (!engine.ok()) return Failed(engine.status());
    engine_.Replace(*std::move(engine));
    down_ = false;
    ++counts_.restarts;
  }
  void EndAll(const absl::Status& running, const absl::Status& waiting) {
    for (auto& sequence : std::exchange(inbox_, {})) sequence->sink->Done(waiting);
    batcher_.EndAll(running, waiting);
    next_step_ = absl::InfiniteFuture();
  }

  const std::string name_;
  const Options options_;
  Admission& admission_;
  Supervisor& supervisor_;
  VirtualClock& clock_;
  std::mt19937& random_;
  StallDetector detector_{[this] { return clock_.monotonic(); }};
  GuardedEngine engine_;
  Batcher batcher_;
  RestartPolicy restarts_;
  std::vector<std::unique_ptr<Sequence>> inbox_;   // that came during a call
  bool in_call_ = false;                           // in Act, which a stalled call does not end
  bool down_ = false;                              // it failed and is being rebuilt
  std::optional<EngineFailure> failure_;           // for good
  absl::Time next_step_ = absl::InfiniteFuture();  // end of the current step
  absl::Time rebuild_ = absl::InfiniteFuture();    // next attempt to rebuild the engine
  double slowdown_ = 1;
  Counts counts_;
  bool retired_ = false;
  bool draining_ = false;
};

}  // namespace linnet::server
