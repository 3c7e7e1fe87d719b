#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/runtime/engine.h"

namespace linnet::test {

// A fake engine with real beam searches over a random model: the logits of a hypothesis depend only
// on its source and its tokens, so batch invariance holds. The end token gets likelier with length.
// Scores of hypotheses are close, so the best hypothesis changes often.
class SearchEngine : public model::Engine {
 public:
  SearchEngine(int vocabulary_size, const model::SearchLimits& limits, uint64_t seed = 1)
      : seed_(seed) {
    info_.device = "noise";
    info_.compute_type = "none";
    info_.rows = 1 << 10;
    info_.encoder_cache_tokens = 1 << 16;
    info_.vocabulary_size = info_.source_vocabulary_size = vocabulary_size;
    info_.max_language_tokens = 4;
    info_.batch_invariant = true;
    info_.limits = limits;
  }

  const model::EngineInfo& info() const override { return info_; }
  absl::Status Check(const model::SequenceInput& input) const override {
    return model::CheckSequence(input, info_);
  }
  bool HasRoom(std::span<const model::SequenceInput> inputs) const override {
    int rows = rows_in_use();
    for (const auto& input : inputs) rows += model::RowsOf(input);
    return rows <= info_.rows;
  }

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    for (const auto& input : inputs) {
      RunningSequence running = {input, model::StartSearch(input, info_), {{}}};
      for (model::TokenId token : input.source) running.source = Mix(running.source, token);
      running_.push_back(std::move(running));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    std::vector<model::SequenceEvent> events;
    for (RunningSequence& running : running_) {
      if (running.paused) continue;
      model::SequenceEvent& event = events.emplace_back();
      event.id = running.input.id;
      event.status = Advance(running);
      event.target_tokens = running.search->steps();
      event.finished = !event.status.ok() || running.search->finished();
      if (event.finished && event.status.ok()) event.hypotheses = running.search->Results();
      if (!event.finished && running.input.report_stable) {
        event.stable = running.search->StablePrefix();
      }
    }
    std::erase_if(running_,
                  [](const RunningSequence& running) { return running.search->finished(); });
    return events;
  }

  void Release(model::SequenceId id) override {
    std::erase_if(running_, [&](const RunningSequence& running) { return running.input.id == id; });
  }
  int sequences() const override { return static_cast<int>(running_.size()); }
  int rows_in_use() const override {
    int rows = 0;
    for (const RunningSequence& running : running_) rows += model::RowsOf(running.input);
    return rows;
  }

 private:
  struct RunningSequence {
    model::SequenceInput input;
    std::unique_ptr<model::Search> search;
    std::vector<std::vector<model::TokenId>> targets;  // tokens of the live hypotheses
    uint64_t source = 0;
    bool paused = false;
  };

  void SetPaused(model::SequenceId id, bool paused) override {
    for (RunningSequence& running : running_) {
      if (running.input.id == id) running.paused = paused;
    }
  }

  static uint64_t Mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15;
    return hash ^ (hash >> 29);
  }

  absl::Status Advance(RunningSequence& running) const {
    const int vocabulary = info_.vocabulary_size;
    std::vector<float> logits, normalizers;
    for (const auto& target : running.targets) {
      uint64_t state = Mix(seed_, running.source);
      // Only the last tokens count: hypotheses with equal endings continue alike, so several
      // survive for long.
      for (size_t i = target.size() - std::min<size_t>(target.size(), 2); i < target.size(); ++i)
        state = Mix(state, target[i]);
      double sum = 0;
      for (int token = 0; token < vocabulary; ++token) {
        float logit = static_cast<float>(Mix(state, token) >> 40) / (1 << 24) * 9;
        if (token == info_.special.eos) logit += 0.3f * static_cast<float>(target.size());
        logits.push_back(logit);
        sum += std::exp(logit / running.input.options.temperature);
      }
      normalizers.push_back(static_cast<float>(std::log(sum)));
    }
    if (auto status = running.search->Advance(logits, normalizers); !status.ok()) return status;
    std::vector<std::vector<model::TokenId>> next;
    for (int i = 0; i < running.search->live(); ++i) {
      next.push_back(running.targets[running.search->parents()[i]]);
      next.back().push_back(running.search->tokens()[i]);
    }
    running.targets = std::move(next);
    return absl::OkStatus();
  }

  const uint64_t seed_;
  model::EngineInfo info_;
  std::vector<RunningSequence> running_;
};

}  // namespace linnet::test
