#include "tests/torch/decoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "model/ops/search/beam_search.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model::testing {

using ::linnet::IsOk;

Device TestDevice() {
  const char* name = std::getenv("LINNET_TEST_DEVICE");
  return name == nullptr ? Device::kCpu : *ParseDevice(name);
}

TorchEngineOptions SmallEngine(SearchPlace search) {
  return {.device = TestDevice(),
          .compute = ComputeType::kFloat32,
          .threads = 1,
          .rows = 40,
          .encoder_cache_tokens = 320,
          .search = search};
}

std::unique_ptr<Engine> MakeEngine(SearchPlace search) {
  auto engine = MakeTorchEngine(TinyBundle(), SmallEngine(search));
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status();
    return nullptr;
  }
  return *std::move(engine);
}

SequenceInput AnySequence(SequenceId id) {
  std::mt19937 random(static_cast<uint32_t>(id));
  SequenceInput input;
  input.id = id;
  for (int i = random() % 39; i > 0; --i) input.source.push_back(4 + random() % 41);
  input.source.push_back(2);
  SearchOptions& options = input.options;
  options.beam_size = 1 + static_cast<int>(random() % 6);
  options.n_best = options.beam_size;
  options.max_target_tokens = static_cast<int>(random() % 20);
  options.min_target_tokens = static_cast<int>(random() % (options.max_target_tokens + 1)) / 3;
  if (random() % 3 == 0) options.no_repeat_ngram_size = 1 + static_cast<int>(random() % 3);
  if (random() % 3 == 0) options.max_ngram_repeats = 1 + static_cast<int>(random() % 2);
  if (random() % 3 == 0) options.unknown_penalty = 0.5f;
  if (random() % 3 == 0) options.temperature = 1.7f;
  if (random() % 4 == 0) options.length_penalty = 0;
  input.report_stable = random() % 2 == 0;
  switch (random() % 6) {
    case 0:
      input.prefix.assign(std::min<int>(2, options.max_target_tokens), 7);
      break;
    case 1:
      input.target = {7, 9, static_cast<TokenId>(4 + random() % 40), 2};
      break;
    case 2:
      options.seed = random();
      break;
    case 3:
      if (random() % 4 == 0) options.beam_size = options.n_best = ops::kMaxBeam + 2;
      break;
    default:
      break;
  }
  if (random() % 4 == 0) {
    input.silent.assign(1 + random() % 2, 40);
    input.before_text = std::ssize(input.source) > 1 ? 1 : 0;
  }
  return input;
}

Answer Decode(Engine& engine, const SequenceInput& input) {
  Answer answer;
  EXPECT_THAT(engine.Add({&input, 1}), IsOk());
  while (engine.sequences() > 0) {
    auto events = engine.Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) return answer;
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      if (event.finished) answer.hypotheses = event.hypotheses;
      if (!event.stable.empty() &&
          (answer.stable.empty() || answer.stable.back() != event.stable)) {
        answer.stable.push_back(event.stable);
      }
    }
  }
  return answer;
}

std::map<SequenceId, std::vector<Hypothesis>> DecodeInBatches(Engine& engine, SequenceId count,
                                                              std::mt19937& random) {
  std::map<SequenceId, std::vector<Hypothesis>> results;
  std::vector<SequenceId> running;
  for (SequenceId next = 1; next <= count || engine.sequences() > 0;) {
    std::vector<SequenceInput> group;
    while (next <= count && std::ssize(group) < random() % 4) group.push_back(AnySequence(next++));
    if (engine.HasRoom(group)) {
      EXPECT_THAT(engine.Add(group), IsOk());
      for (const SequenceInput& input : group) running.push_back(input.id);
    } else {
      next -= group.size();
    }
    if (!running.empty() && random() % 8 == 0) {
      const size_t which = random() % running.size();
      engine.Release(running[which]);
      running.erase(running.begin() + which);
    }
    auto events = engine.Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) return results;
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      if (!event.finished) continue;
      EXPECT_TRUE(results.emplace(event.id, std::move(event.hypotheses)).second);
      std::erase(running, event.id);
    }
  }
  return results;
}

bool SameAnswers(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  const bool exact = TestDevice() == Device::kCpu;
  // Sums of some dozens of terms of size 1, in another order; a score adds twenty of them.
  const float near = exact ? 0.0f : 1e-4f;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Hypothesis& one, const Hypothesis& other) {
                      if (std::abs(one.score - other.score) > near) return false;
                      if (!exact) return true;
                      return one.tokens == other.tokens && one.token_scores == other.token_scores &&
                             one.ended_by_limit == other.ended_by_limit;
                    });
}

}  // namespace linnet::model::testing
