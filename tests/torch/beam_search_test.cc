// The device's beam search, run on the CPU: bit for bit the results of BeamSearch, in any batch.
// CUDA compiles the same code (ops/search/beam_body.h).
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "model/ops/cpu/log_normalizer.h"
#include "model/ops/ops.h"
#include "model/ops/search/beam_search.h"
#include "model/runtime/search/candidates.h"
#include "model/torch/decoding/beam_plan.h"
#include "model/torch/encoder/free_list.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::testing::ElementsAre;

constexpr float kNever = -std::numeric_limits<float>::infinity();

using Targets = std::vector<std::vector<TokenId>>;

// Runs the host's search in the loop of an engine.
absl::StatusOr<Outcome> SearchOnHost(Search&& search, float temperature, const ToyModel& model) {
  Outcome outcome;
  Targets targets(1);
  while (!search.finished()) {
    std::vector<std::vector<float>> logits;
    std::vector<RowLogits> rows;
    for (const auto& target : targets) logits.push_back(model(target));
    for (const auto& row : logits) {
      rows.push_back(
          {.logits = row,
           .log_normalizer = ops::LogNormalizer(row.data(), std::ssize(row), temperature)});
    }
    if (absl::Status status = search.Advance(rows); !status.ok()) return status;
    Targets next;
    for (int i = 0; i < search.live(); ++i) {
      next.push_back(targets[search.parents()[i]]);
      next.back().push_back(search.tokens()[i]);
    }
    targets = next;
    outcome.stable.push_back(search.StablePrefix());
  }
  outcome.hypotheses = search.Results();
  outcome.steps = search.steps();
  return outcome;
}

// One search in the batch.
struct TestSearch {
  int id;
  Scenario scenario;
  bool scoring;
  FreeList::Lease slots;
  std::unique_ptr<Search> search;  // host copy, follows the records
  Targets targets = Targets(1);    // of the live hypotheses
  std::vector<std::vector<int>> inputs = std::vector<std::vector<int>>(1);  // inputs of each so far
  std::vector<std::vector<TokenId>> stable = {};
  int position = 0;
  int end_step = -1;
};

// Searches that are added, released and finished at different steps and share tables and steps.
class TestBatch {
 public:
  static constexpr int kSlots = 40, kReach = 5, kBlocks = 2, kLongest = 16;

  TestBatch(const SpecialTokens& special, int vocabulary,
            std::shared_ptr<const TokenGrammar> grammar = nullptr)
      : special_(special),
        vocabulary_(vocabulary),
        grammar_(grammar),
        tables_(ops::NewBeamTables(kSlots, kReach, kLongest, at::kCPU)),
        state_(kReach, std::vector<int>(kSlots, -1)) {
    for (at::Tensor& table : tables_) table.fill_(77);  // tables are not cleared for a new sequence
  }

  bool Join(int id, const Scenario& scenario, bool scoring = false) {
    const int beam = scoring ? 1 : scenario.options.beam_size;
    if (beam > slots_.free()) return false;
    SearchSpec spec = {.options = scenario.options, .special = special_, .grammar = grammar_};
    if (scoring) {
      spec.target = scenario.prefix;
    } else {
      spec.prefix = scenario.prefix;
    }
    searches_.push_back({id, scenario, scoring, slots_.Take(beam), NewSearch(spec)});
    EXPECT_TRUE(searches_.back().search->has_device_form());
    return true;
  }

  // `rows` of the step, at least those of the running searches.
  void Step(int rows) {
    const at::Tensor plan = Plan(rows);
    const std::vector<int64_t> special = {special_.start, special_.pad, special_.eos, special_.unk};
    const ops::StepRows in = ops::CallBeamInputs(plan, tables_, special, kBlocks);
    at::Tensor logits = at::full({rows, vocabulary_}, kNever);
    int row = 0;
    for (TestSearch& running : searches_) {
      Feed(running, row, in, logits);
      row += std::ssize(running.slots.numbers());
    }
    for (int r = 0; r < rows; ++r) {
      if (in.source_lengths.const_data_ptr<int32_t>()[r] == 0) {
        EXPECT_EQ(in.backpointers.const_data_ptr<int32_t>()[r * kReach], -1);
        // Logits of idle rows have no effect.
        logits[r].fill_(std::numeric_limits<float>::quiet_NaN());
      }
    }
    at::Tensor record = at::full({rows, ops::kRecordWords}, 99, at::kInt);
    ops::CallBeamStep(plan, logits, in.backpointers, tables_, special,
                      GrammarTensors(grammar_.get(), at::kCPU), record);
    row = 0;
    for (TestSearch& running : searches_) {
      Collect(running,
              reinterpret_cast<const ops::BeamRecord*>(record.const_data_ptr<int32_t>()) + row);
      row += std::ssize(running.slots.numbers());
    }
    ++step_;
    // An ended search stays for one more step, since records are collected one step late.
    std::erase_if(searches_, [&](TestSearch& running) {
      if (running.end_step < 0 || running.end_step == step_ - 1) return false;
      running.slots = {};
      done.emplace(running.id, std::move(running));
      return true;
    });
  }

  void Release(int which) { searches_.erase(searches_.begin() + which); }
  int searches() const { return static_cast<int>(searches_.size()); }
  int rows() const { return slots_.used(); }

  std::map<int, TestSearch> done;
  int failed = 0;

 private:
  at::Tensor Plan(int rows) {
    at::Tensor plan = at::zeros({rows, ops::kPlanWords + kBlocks}, at::kInt);
    const auto at_row = [&](int r) {
      return plan.mutable_data_ptr<int32_t>() + r * (ops::kPlanWords + kBlocks);
    };
    for (int r = 0; r < rows; ++r) reinterpret_cast<ops::BeamPlan*>(at_row(r))->search = -1;
    int row = 0;
    for (int n = 0; n < std::ssize(searches_); ++n) {
      const TestSearch& running = searches_[n];
      const SearchOptions& options = running.scenario.options;
      auto& own = *reinterpret_cast<ops::BeamPlan*>(at_row(n));
      const auto slots = running.slots.numbers();
      own.beam = static_cast<int32_t>(slots.size());
      own.first_row = row;
      own.position = running.position;
      own.forced = running.search->Describe(running.position).forced;
      own.may_end = running.position >= options.min_target_tokens;
      own.ngram = running.scoring ? 0 : options.no_repeat_ngram_size;
      own.repeats = running.scoring ? 0 : options.max_ngram_repeats;
      own.unknown_penalty = options.unknown_penalty;
      own.temperature = options.temperature;
      own.source_tokens = 100 + running.id;
      own.left = options.max_target_tokens - running.position - 1;
      std::copy(slots.begin(), slots.end(), own.slots);
      at_row(n)[ops::kPlanWords] = running.id;
      for (int i = 0; i < std::ssize(slots); ++i) {
        reinterpret_cast<ops::BeamPlan*>(at_row(row++))->search = n;
      }
    }
    return plan;
  }

  // Checks the inputs of the search's rows and fills in the logits of its model.
  void Feed(TestSearch& running, int row, const ops::StepRows& in, at::Tensor& logits) {
    const auto slots = running.slots.numbers();
    const int live = running.end_step >= 0 ? 0 : running.search->live();
    for (int i = 0; i < std::ssize(slots); ++i, ++row) {
      const int32_t* backpointers = in.backpointers.const_data_ptr<int32_t>() + row * kReach;
      const int source = in.source_lengths.const_data_ptr<int32_t>()[row];
      ASSERT_EQ(source, i < live ? 100 + running.id : 0) << "search " << running.id;
      if (i >= live) continue;
      ASSERT_EQ(in.blocks.const_data_ptr<int32_t>()[row * kBlocks], running.id);
      ASSERT_EQ(in.positions.const_data_ptr<int32_t>()[row], running.position);
      ASSERT_EQ(in.tokens.const_data_ptr<int64_t>()[row],
                running.position == 0 ? special_.start : running.targets[i].back());
      ASSERT_EQ(backpointers[0], slots[i]);
      state_[running.position % kReach][slots[i]] = next_input_;
      running.inputs[i].push_back(next_input_++);
      const std::vector<float> row_logits = running.scenario.model(running.targets[i]);
      std::copy(row_logits.begin(), row_logits.end(),
                logits.mutable_data_ptr<float>() + row * vocabulary_);
    }
    for (int i = 0; i < live; ++i) {
      const int32_t* backpointers =
          in.backpointers.const_data_ptr<int32_t>() + (row - std::ssize(slots) + i) * kReach;
      for (int j = 0; j < std::min(kReach, running.position + 1); ++j) {
        ASSERT_EQ(state_[(running.position - j) % kReach][backpointers[j]],
                  running.inputs[i][running.position - j]);
      }
    }
  }

  void Collect(TestSearch& running, const ops::BeamRecord* record) {
    ++running.position;
    std::vector<Candidate> live, ended;
    const auto add = [](const ops::BeamEntry& entry, std::vector<Candidate>& entries) {
      if (entry.token < 0) return;
      entries.push_back({.sum = entry.sum,
                         .log_probability = entry.log_probability,
                         .parent = entry.parent,
                         .token = entry.token});
    };
    for (int i = 0; i < std::ssize(running.slots.numbers()); ++i) {
      add(record[i].next, live);
      add(record[i].ended, ended);
    }
    if (running.end_step >= 0) {
      EXPECT_TRUE(live.empty() && ended.empty());
      return;
    }
    if (record[0].ended.token < ops::kNoEntry) {
      ++failed;
      running.end_step = step_;
      return;
    }
    Targets targets;
    std::vector<std::vector<int>> inputs;
    for (const Candidate& entry : live) {
      targets.push_back(running.targets[entry.parent]);
      targets.back().push_back(entry.token);
      inputs.push_back(running.inputs[entry.parent]);
    }
    running.targets = std::move(targets);
    running.inputs = std::move(inputs);
    running.search->Follow(live, ended);
    running.stable.push_back(running.search->StablePrefix());
    if (running.search->finished()) running.end_step = step_;
  }

  SpecialTokens special_;
  int vocabulary_;
  std::shared_ptr<const TokenGrammar> grammar_;
  FreeList slots_{kSlots};
  std::vector<at::Tensor> tables_;
  std::vector<std::vector<int>> state_;
  std::vector<TestSearch> searches_;
  int step_ = 0, next_input_ = 0;
};

class DeviceBeamSearchTest : public ::testing::Test {
 protected:
  DeviceBeamSearchTest() {
    ops::Describe();
    at::set_num_threads(1);  // threads do not pay off in steps this small
  }
  ~DeviceBeamSearchTest() override { at::set_num_threads(threads_); }

 private:
  const int threads_ = at::get_num_threads();
};

// `spelled`: with a grammar.
void ExpectSearchesOfTheHost(int vocabulary, const SpecialTokens& special, bool spelled, int many) {
  const TokenSpelling spelling = spelled ? RandomSpelling(vocabulary, special) : TokenSpelling();
  const auto grammar = spelled ? GrammarOf(spelling) : nullptr;
  TestBatch batch(special, vocabulary, grammar);
  std::mt19937 random(vocabulary);
  std::map<int, Scenario> scenarios;
  for (int id = 0; id < many || batch.searches() > 0;) {
    while (id < many && random() % 3 != 0) {
      Scenario scenario = RandomScenario(id, vocabulary, special);
      if (spelled) {
        std::erase_if(scenario.prefix,
                      [&](TokenId token) { return spelling[token] != kSpellsText; });
      }
      if (!batch.Join(id, scenario)) break;
      scenarios.emplace(id++, scenario);
    }
    if (batch.searches() > 0 && random() % 10 == 0) batch.Release(random() % batch.searches());
    if (batch.searches() > 0) batch.Step(batch.rows() + static_cast<int>(random() % 4));
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(std::ssize(batch.done), many / 3) << "most are not released before they end";
  for (const auto& [id, running] : batch.done) {
    const Scenario& scenario = scenarios.at(id);
    const auto host =
        SearchOnHost(BeamSearch({scenario.options, special, scenario.prefix, {}, grammar}),
                     scenario.options.temperature, scenario.model);
    ASSERT_THAT(host, IsOk());
    ASSERT_TRUE(SameBits(running.search->Results(), host->hypotheses))
        << "id " << id << "\n"
        << Describe(running.search->Results()) << "instead of\n"
        << Describe(host->hypotheses);
    ASSERT_EQ(running.stable, host->stable);
    ASSERT_EQ(running.search->steps(), host->steps);
  }
}

TEST_F(DeviceBeamSearchTest, EqualsHostSearchInAnyBatch) {
  for (const int vocabulary : {13, 700}) {
    for (const SpecialTokens& special : {kSpecial, MarianSpecial(vocabulary)})
      ExpectSearchesOfTheHost(vocabulary, special, false, vocabulary == 13 ? 3000 : 300);
  }
}

TEST_F(DeviceBeamSearchTest, EqualsHostSearchWithGrammar) {
  for (const int vocabulary : {41, 700}) {
    for (const SpecialTokens& special : {kSpecial, MarianSpecial(vocabulary)})
      ExpectSearchesOfTheHost(vocabulary, special, true, vocabulary == 41 ? 2000 : 300);
  }
}

TEST_F(DeviceBeamSearchTest, EqualsHostSearchAtMaxBeam) {
  Scenario scenario = RandomScenario(5, 200, kSpecial);
  scenario.prefix.clear();
  scenario.options.beam_size = scenario.options.n_best = ops::kMaxBeam;
  scenario.options.max_target_tokens = 10;
  TestBatch batch(kSpecial, 200);
  ASSERT_TRUE(batch.Join(1, scenario));
  while (batch.searches() > 0) batch.Step(ops::kMaxBeam);
  const auto host = SearchOnHost(BeamSearch({scenario.options, kSpecial}),
                                 scenario.options.temperature, scenario.model);
  ASSERT_THAT(host, IsOk());
  EXPECT_TRUE(SameBits(batch.done.at(1).search->Results(), host->hypotheses));
}

TEST_F(DeviceBeamSearchTest, ScoresGivenTargetsAsForcedSearches) {
  TestBatch batch(kSpecial, 50);
  std::map<int, Scenario> scenarios;
  for (int id = 0; id < 20; ++id) {
    Scenario scenario = RandomScenario(id, 50, kSpecial);
    scenario.prefix = {7, 3, static_cast<TokenId>(4 + id), kSpecial.eos};
    ASSERT_TRUE(batch.Join(id, scenario, /*scoring=*/true));
    scenarios.emplace(id, scenario);
  }
  while (batch.searches() > 0) batch.Step(20);
  for (const auto& [id, scenario] : scenarios) {
    const auto host = SearchOnHost(
        Scorer({.options = scenario.options, .special = kSpecial, .target = scenario.prefix}),
        scenario.options.temperature, scenario.model);
    ASSERT_THAT(host, IsOk());
    EXPECT_TRUE(SameBits(batch.done.at(id).search->Results(), host->hypotheses)) << id;
  }
}

TEST_F(DeviceBeamSearchTest, RowOfNaNFailsOnlyItsSearch) {
  TestBatch batch(kSpecial, 20);
  Scenario good = RandomScenario(3, 20, kSpecial), bad = good, hopeless = good;
  bad.model = [](const std::vector<TokenId>&) {
    return std::vector<float>(20, std::numeric_limits<float>::quiet_NaN());
  };
  hopeless.options.min_target_tokens = hopeless.options.max_target_tokens = 5;
  hopeless.prefix.clear();
  hopeless.model = [](const std::vector<TokenId>&) {
    std::vector<float> row(20, kNever);
    row[kSpecial.eos] = 0;  // which is not allowed yet
    return row;
  };
  ASSERT_TRUE(batch.Join(1, bad));
  ASSERT_TRUE(batch.Join(2, good));
  ASSERT_TRUE(batch.Join(3, hopeless));
  while (batch.searches() > 0) batch.Step(batch.rows());
  EXPECT_EQ(batch.failed, 2);
  const auto host = SearchOnHost(BeamSearch({good.options, kSpecial, good.prefix}),
                                 good.options.temperature, good.model);
  ASSERT_THAT(host, IsOk());
  EXPECT_TRUE(SameBits(batch.done.at(2).search->Results(), host->hypotheses));
}

TEST_F(DeviceBeamSearchTest, RefusesInvalidPlans) {
  const auto tables = ops::NewBeamTables(4, 3, 8, at::kCPU);
  const std::vector<int64_t> special = {2, 1, 2, 3};
  at::Tensor plan = at::zeros({1, ops::kPlanWords + 1}, at::kInt);
  auto& own = *reinterpret_cast<ops::BeamPlan*>(plan.mutable_data_ptr<int32_t>());
  own.beam = 1;
  own.temperature = 1;
  own.slots[0] = 3;
  ops::CallBeamInputs(plan, tables, special, 1);
  const auto refuses = [&](const char* why) {
    try {
      ops::CallBeamInputs(plan, tables, special, 1);
      ADD_FAILURE() << "no error that says: " << why;
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(), ::testing::HasSubstr(why));
    }
  };
  own.slots[0] = 4;
  refuses("a slot is 4, it must be between 0 and 3");
  own.slots[0] = 3;
  own.beam = 2;
  refuses("first_row is 0, it must be between 0 and -1");
  own.beam = 1;
  own.search = 1;
  refuses("search is 1, it must be between -1 and 0");
  own.search = 0;
  own.temperature = 0;
  refuses("temperature is 0, it must be above 0");
}

}  // namespace
}  // namespace linnet::model
