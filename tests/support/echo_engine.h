#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/runtime/engine.h"

namespace linnet::test {

// A fake engine without a model: the target is the text's tokens again, one per step. Rows, encoder
// cache, limits, n-best, forced ends and failures are those of a real engine. Deterministic;
// records its calls.
class EchoEngine : public model::Engine {
 public:
  struct Options {
    int rows = 64;
    int64_t encoder_cache_tokens = 4096;
    int block_tokens = 1;  // size of a block of the encoder cache
    int vocabulary_size = 1 << 20;
    model::SearchLimits limits{
        .max_beam_size = 8, .max_target_tokens = 100, .max_source_tokens = 64};
    // Called first in Add and Step: lets a test block or count.
    std::function<void()> on_add = nullptr;
    std::function<void()> on_step = nullptr;
    // A sequence with this token fails, as if its logits were NaN; the others continue.
    model::TokenId not_a_number = -1;
    // Step number (from 1) in which the engine as a whole fails.
    int failing_step = -1;
    // Called at each step; if it returns true, the step fails with DeviceLost.
    std::function<bool()> device_lost = nullptr;
    // A source with this token cannot be encoded.
    model::TokenId unencodable = -1;
    // Add with more sources than this fails with RESOURCE_EXHAUSTED.
    int max_at_once = 1 << 30;
    // HasRoom always returns false.
    bool never_has_room = false;
    std::function<bool()> encoding = nullptr;  // what encoding() returns; false without it
    bool batch_invariant = true;
    std::optional<model::EncoderCost> encoder_cost = std::nullopt;  // as if measured
    std::string compute_type = "none";
  };

  EchoEngine() : EchoEngine(Options{}) {}
  explicit EchoEngine(Options options) : options_(std::move(options)) {
    info_.device = "echo";
    info_.compute_type = options_.compute_type;
    info_.rows = options_.rows;
    info_.encoder_cache_tokens = options_.encoder_cache_tokens;
    info_.vocabulary_size = options_.vocabulary_size;
    info_.source_vocabulary_size = options_.vocabulary_size;
    info_.batch_invariant = options_.batch_invariant;
    info_.limits = options_.limits;
    info_.encoder_cost = options_.encoder_cost;
  }

  const model::EngineInfo& info() const override { return info_; }

  absl::Status Check(const model::SequenceInput& input) const override {
    if (auto status = model::CheckOptions(input.options, options_.limits); !status.ok())
      return status;
    if (input.options.beam_size > options_.rows) {
      return absl::InvalidArgumentError(absl::StrCat("beam_size is ", input.options.beam_size,
                                                     ", the engine has ", options_.rows, " rows"));
    }
    if (input.source.empty() || model::TextOf(input).back() != info_.special.eos) {
      return absl::InvalidArgumentError("a source ends with eos");
    }
    if (Blocks(input) > options_.encoder_cache_tokens)
      return absl::InvalidArgumentError("source is longer than the memory");
    return absl::OkStatus();
  }

  bool HasRoom(std::span<const model::SequenceInput> inputs) const override {
    int rows = rows_in_use();
    int64_t memory = memory_in_use();
    for (const auto& input : inputs) {
      rows += input.options.beam_size;
      memory += Blocks(input);
    }
    return !options_.never_has_room && rows <= options_.rows &&
           memory <= options_.encoder_cache_tokens;
  }

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    if (options_.on_add) options_.on_add();
    if (std::ssize(inputs) > options_.max_at_once)
      return absl::ResourceExhaustedError("out of memory");
    for (const auto& input : inputs) {
      if (std::count(input.source.begin(), input.source.end(), options_.unencodable) > 0) {
        return absl::InternalError("the encoder failed");
      }
    }
    for (const auto& input : inputs) running_.push_back({input, 0});
    groups.push_back(static_cast<int>(inputs.size()));
    return absl::OkStatus();
  }

  bool encoding() const override { return options_.encoding && options_.encoding(); }

  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    if (options_.on_step) options_.on_step();
    int steps = 0, stepped_rows = 0;
    for (const RunningSequence& sequence : running_) {
      if (sequence.paused) continue;
      ++steps;
      stepped_rows += sequence.input.options.beam_size;
    }
    sizes.push_back(steps);
    rows.push_back(stepped_rows);
    const absl::Status failed = absl::InternalError("the engine failed");
    if (options_.device_lost && options_.device_lost()) {
      running_.clear();
      return model::DeviceLost(failed);
    }
    if (static_cast<int>(sizes.size()) == options_.failing_step) {
      running_.clear();
      return failed;
    }
    std::vector<model::SequenceEvent> events;
    for (RunningSequence& sequence : running_) {
      if (sequence.paused) continue;
      model::SequenceEvent& event = events.emplace_back();
      event.id = sequence.input.id;
      event.target_tokens = ++sequence.steps;
      const auto source = model::TextOf(sequence.input);
      if (source[std::min<size_t>(sequence.steps - 1, source.size() - 1)] ==
          options_.not_a_number) {
        event.status = absl::InternalError("a row of logits is not a number");
        event.finished = true;
      } else if (sequence.steps == std::ssize(source) ||
                 sequence.steps > sequence.input.options.max_target_tokens) {
        event.hypotheses = Hypotheses(sequence);
        if (sequence.input.align) event.attention = Attention(sequence);
        event.finished = true;
      } else if (sequence.input.report_stable) {
        event.stable.assign(source.begin(), source.begin() + sequence.steps);
      }
    }
    for (const auto& event : events) {
      if (event.finished) Release(event.id);
    }
    return events;
  }

  void Release(model::SequenceId id) override {
    std::erase_if(running_,
                  [&](const RunningSequence& sequence) { return sequence.input.id == id; });
  }

  void ReleaseAll() { running_.clear(); }

  int sequences() const override { return static_cast<int>(running_.size()); }
  int rows_in_use() const override {
    int rows = 0;
    for (const RunningSequence& sequence : running_) rows += sequence.input.options.beam_size;
    return rows;
  }
  int64_t memory_in_use() const {
    int64_t tokens = 0;
    for (const RunningSequence& sequence : running_) tokens += Blocks(sequence.input);
    return tokens;
  }

  std::vector<int> sizes;   // sequences of each step
  std::vector<int> rows;    // rows of each step
  std::vector<int> groups;  // sequences of each call of Add

 private:
  struct RunningSequence {
    model::SequenceInput input;
    int steps = 0;
    bool paused = false;
  };

  void SetPaused(model::SequenceId id, bool paused) override {
    for (RunningSequence& sequence : running_) {
      if (sequence.input.id == id) sequence.paused = paused;
    }
  }

  int64_t Blocks(const model::SequenceInput& input) const {
    const int64_t block = options_.block_tokens;
    return (std::ssize(input.source) + block - 1) / block * block;
  }

  // Attention: three quarters to the copied token, the rest to the next one.
  static std::vector<float> Attention(const RunningSequence& sequence) {
    const size_t source = model::TextOf(sequence.input).size();
    std::vector<float> attention(sequence.steps * source);
    for (size_t t = 0; t < sequence.steps; ++t) {
      attention[t * source + t] += 0.75f;
      attention[t * source + std::min(t + 1, source - 1)] += 0.25f;
    }
    return attention;
  }

  // Hypothesis i has the same tokens and a score that is lower by i.
  std::vector<model::Hypothesis> Hypotheses(const RunningSequence& sequence) const {
    const auto source = model::TextOf(sequence.input);
    std::vector<model::Hypothesis> hypotheses;
    for (int i = 0; i < sequence.input.options.n_best; ++i) {
      model::Hypothesis& hypothesis = hypotheses.emplace_back();
      hypothesis.tokens.assign(source.begin(), source.begin() + sequence.steps);
      hypothesis.ended_by_limit = hypothesis.tokens.back() != info_.special.eos;
      hypothesis.tokens.back() = info_.special.eos;
      hypothesis.token_scores.assign(hypothesis.tokens.size(), -0.5f);
      hypothesis.score = -0.5f * std::pow(static_cast<float>(sequence.steps),
                                          1 - sequence.input.options.length_penalty) -
                         i;
    }
    return hypotheses;
  }

  Options options_;
  model::EngineInfo info_;
  std::vector<RunningSequence> running_;
};

}  // namespace linnet::test
