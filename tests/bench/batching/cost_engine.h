// A fake engine that only takes time, on a virtual clock that only it advances.
#pragma once

#include <algorithm>
#include <ostream>
#include <span>
#include <vector>

#include "model/runtime/engine.h"
#include "tests/bench/batching/disciplines.h"

namespace linnet::bench {

// Costs in seconds: of an encoder call plus each of its tokens with padding, and of a step plus
// each of its rows.
struct Costs {
  double call = 0, token = 0;
  double step = 0, row = 0;

  friend void PrintTo(const Costs& costs, std::ostream* out) {
    *out << costs.call << " + " << costs.token << " a token, " << costs.step << " + " << costs.row
         << " a row";
  }
};

class VirtualClock final : public Clock {
 public:
  double Now() override { return now_; }
  void WaitUntil(double time) override { now_ = std::max(now_, time); }
  void Spend(double seconds) { now_ += seconds; }

 private:
  double now_ = 0;
};

// Each sequence takes RowsOf(input) rows for max_target_tokens + 1 steps, the last one for the end
// token.
class CostEngine final : public model::Engine {
 public:
  CostEngine(const Costs& costs, int rows, VirtualClock& clock) : costs_(costs), clock_(clock) {
    info_.device = "simulated";
    info_.rows = rows;
  }

  const model::EngineInfo& info() const override { return info_; }
  bool HasRoom(std::span<const model::SequenceInput> sequences) const override {
    int rows = rows_;
    for (const auto& sequence : sequences) rows += model::RowsOf(sequence);
    return rows <= info_.rows;
  }
  absl::Status Check(const model::SequenceInput&) const override { return absl::OkStatus(); }

  absl::Status Add(std::span<const model::SequenceInput> sequences) override {
    size_t longest = 0;
    for (const auto& sequence : sequences) longest = std::max(longest, sequence.source.size());
    clock_.Spend(costs_.call + costs_.token * static_cast<double>(longest * sequences.size()));
    for (const auto& sequence : sequences) {
      running_.push_back(
          {sequence.id, sequence.options.max_target_tokens + 1, model::RowsOf(sequence)});
      rows_ += running_.back().rows;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    int rows = 0;
    for (const RunningSequence& running : running_) rows += running.paused ? 0 : running.rows;
    clock_.Spend(costs_.step + costs_.row * rows);
    std::vector<model::SequenceEvent> events;
    for (RunningSequence& running : running_) {
      if (running.paused) continue;
      if (--running.steps > 0) continue;  // events of unfinished sequences are not used here
      auto& event = events.emplace_back();
      event.id = running.id;
      event.finished = true;
      event.hypotheses.emplace_back();
    }
    for (const auto& event : events) Release(event.id);
    return events;
  }

  void Release(model::SequenceId id) override {
    std::erase_if(running_, [&](const RunningSequence& running) {
      if (running.id != id) return false;
      rows_ -= running.rows;
      return true;
    });
  }
  int sequences() const override { return static_cast<int>(running_.size()); }
  int rows_in_use() const override { return rows_; }

 private:
  struct RunningSequence {
    model::SequenceId id;
    int steps, rows;
    bool paused = false;
  };

  void SetPaused(model::SequenceId id, bool paused) override {
    for (RunningSequence& running : running_) {
      if (running.id == id) running.paused = paused;
    }
  }

  Costs costs_;
  VirtualClock& clock_;
  model::EngineInfo info_;
  std::vector<RunningSequence> running_;
  int rows_ = 0;
};

}  // namespace linnet::bench
