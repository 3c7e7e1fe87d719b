#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/runtime/engine.h"

namespace linnet::test {

// An engine with real beam searches over a model that is noise: the logits of a hypothesis depend
// on its source and its tokens alone, so that an answer does not depend on its company. Ends get
// likelier with length. Hypotheses are close to each other: a search changes its mind often.
class SearchEngine : public model::Engine {
 public:
  SearchEngine(int vocabulary_size, const model::SearchLimits& limits, uint64_t seed = 1)
      : seed_(seed) {
    info_.device = "noise";
    info_.compute_type = "none";
    info_.rows = 1 << 10;
    info_.memory_tokens = 1 << 16;
    info_.vocabulary_size = info_.source_vocabulary_size = vocabulary_size;
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

  absl::Status Seat(std::span<const model::SequenceInput> inputs) override {
    for (const auto& input : inputs) {
      Seated seated = {input, model::StartSearch(input, info_), {{}}};
      for (model::TokenId token : input.source) seated.source = Mix(seated.source, token);
      seated_.push_back(std::move(seated));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    std::vector<model::SequenceEvent> events;
    for (Seated& seated : seated_) {
      model::SequenceEvent& event = events.emplace_back();
      event.id = seated.input.id;
      event.status = Advance(seated);
      event.target_tokens = seated.search.steps();
      event.finished = !event.status.ok() || seated.search.finished();
      if (event.finished && event.status.ok()) event.hypotheses = seated.search.Results();
      if (!event.finished && seated.input.report_stable) {
        event.stable = seated.search.StablePrefix();
      }
    }
    std::erase_if(seated_, [](const Seated& seated) { return seated.search.finished(); });
    return events;
  }

  void Release(model::SequenceId id) override {
    std::erase_if(seated_, [&](const Seated& seated) { return seated.input.id == id; });
  }
  int sequences() const override { return static_cast<int>(seated_.size()); }
  int rows_in_use() const override {
    int rows = 0;
    for (const Seated& seated : seated_) rows += model::RowsOf(seated.input);
    return rows;
  }

 private:
  struct Seated {
    model::SequenceInput input;
    model::BeamSearch search;
    std::vector<std::vector<model::TokenId>> targets;  // of the live hypotheses
    uint64_t source = 0;
  };

  static uint64_t Mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15;
    return hash ^ (hash >> 29);
  }

  absl::Status Advance(Seated& seated) const {
    const int vocabulary = info_.vocabulary_size;
    std::vector<float> logits, normalizers;
    for (const auto& target : seated.targets) {
      uint64_t state = Mix(seed_, seated.source);
      // The last tokens alone: hypotheses that end alike go on alike, so that several live long.
      for (size_t i = target.size() - std::min<size_t>(target.size(), 2); i < target.size(); ++i)
        state = Mix(state, target[i]);
      double sum = 0;
      for (int token = 0; token < vocabulary; ++token) {
        float logit = static_cast<float>(Mix(state, token) >> 40) / (1 << 24) * 9;
        if (token == info_.special.eos) logit += 0.3f * static_cast<float>(target.size());
        logits.push_back(logit);
        sum += std::exp(logit / seated.input.options.temperature);
      }
      normalizers.push_back(static_cast<float>(std::log(sum)));
    }
    if (auto status = seated.search.Advance(logits, normalizers); !status.ok()) return status;
    std::vector<std::vector<model::TokenId>> next;
    for (int i = 0; i < seated.search.live(); ++i) {
      next.push_back(seated.targets[seated.search.parents()[i]]);
      next.back().push_back(seated.search.tokens()[i]);
    }
    seated.targets = std::move(next);
    return absl::OkStatus();
  }

  const uint64_t seed_;
  model::EngineInfo info_;
  std::vector<Seated> seated_;
};

}  // namespace linnet::test
