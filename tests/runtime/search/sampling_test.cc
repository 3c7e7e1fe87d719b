// Sampling: random numbers, candidates, and frequencies equal to the model's probabilities.
#include "model/runtime/search/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// The 99.9 % quantile of chi-square with so many degrees of freedom (Wilson and Hilferty 1931). The
// seeds are fixed: a test passes always or never.
double ChiSquareLimit(int degrees) {
  const double spread = 2.0 / (9 * degrees);
  return degrees * std::pow(1 - spread + 3.09 * std::sqrt(spread), 3);
}

// Counts against probabilities; cells too small for the statistic are merged.
void ExpectFrequencies(const std::vector<double>& counts,
                       const std::vector<double>& probabilities) {
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double statistic = 0, rare_count = 0, rare_expected = 0;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * draws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "cell " << i << " cannot be";
    } else if (expected < 10) {
      rare_count += counts[i];
      rare_expected += expected;
    } else {
      add(counts[i], expected);
    }
  }
  if (rare_expected > 0) add(rare_count, rare_expected);
  ASSERT_GT(cells, 1);
  EXPECT_LT(statistic, ChiSquareLimit(cells - 1)) << cells << " cells, " << draws << " draws";
}

std::vector<double> Softmax(const std::vector<float>& logits, float temperature = 1) {
  std::vector<double> p;
  for (float logit : logits) p.push_back(std::exp(double{logit} / temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= total;
  return p;
}

// Draws from a row with evenly spaced uniform draws, so that the count of each token is
// proportional to its probability, to one count.
std::map<TokenId, int> Sweep(const std::vector<float>& logits, const SamplingParameters& sampling,
                             int draws = 1000) {
  const LogitRow row = {.logits = logits, .log_normalizer = LogNormalizer(logits, 1)};
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) {
    const auto drawn = DrawToken(row, sampling, (i + 0.5) / draws);
    EXPECT_TRUE(drawn.has_value());
    ++counts[drawn->token];
  }
  return counts;
}

TEST(PhiloxTest, MatchesPublishedVectors) {
  // kat_vectors of Random123.
  EXPECT_THAT(Philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(UniformDrawTest, IsUniformAlongEachArgument) {
  const std::vector<std::function<double(int)>> along = {
      [](int i) { return UniformDraw(i, 0, 0); }, [](int i) { return UniformDraw(7, i, 0); },
      [](int i) { return UniformDraw(7, 0, i); },
      [](int i) { return UniformDraw(uint64_t{1} << 32 | 5, i % 100, i / 100); }};
  for (const auto& draw : along) {
    std::vector<double> counts(64), pairs(64);
    for (int i = 0; i < 64000; ++i) {
      const double u = draw(i);
      ASSERT_GE(u, 0);
      ASSERT_LT(u, 1);
      ++counts[static_cast<int>(u * 64)];
      ++pairs[static_cast<int>(u * 8) * 8 + static_cast<int>(draw(i + 1) * 8)];
    }
    ExpectFrequencies(counts, std::vector<double>(64, 1.0 / 64));
    ExpectFrequencies(pairs, std::vector<double>(64, 1.0 / 64));
  }
}

TEST(UniformDrawTest, DependsOnEveryArgument) {
  const double draw = UniformDraw(1, 2, 3);
  EXPECT_EQ(UniformDraw(1, 2, 3), draw);
  EXPECT_NE(UniformDraw(2, 2, 3), draw);
  EXPECT_NE(UniformDraw(1, 3, 3), draw);
  EXPECT_NE(UniformDraw(1, 2, 4), draw);
  EXPECT_NE(UniformDraw(1 | uint64_t{1} << 63, 2, 3), draw) << "all 64 bits of the seed";
}

TEST(DrawTokenTest, DrawsTokensByProbability) {
  const std::vector<float> logits = {0, 1, -1, 2.5f, 0.5f, -3};
  const std::vector<double> p = Softmax(logits);
  for (const auto& [token, count] : Sweep(logits, {}, 100000))
    EXPECT_NEAR(count, p[token] * 100000, 1 + 1e-6 * 100000) << token;
}

TEST(DrawTokenTest, NeverDrawsExcludedTokens) {
  const std::vector<float> logits = {5, 0, 0, 5, 0};
  const std::vector<TokenId> excluded = {0, 3};
  const auto counts = Sweep(logits, {.excluded = excluded}, 999);
  EXPECT_THAT(counts, SizeIs(3));
  for (TokenId token : {1, 2, 4}) EXPECT_EQ(counts.at(token), 333);
  // Excluding the likeliest token leaves the unlikely ones.
  const std::vector<float> certain = {200, 0, 0};
  const std::vector<TokenId> first = {0};
  EXPECT_EQ(Sweep(certain, {.excluded = first}).at(1), 500);
}

TEST(DrawTokenTest, TopKKeepsLikeliestTokensWithTiesToLower) {
  const std::vector<float> logits = {1, 3, 2, 3, 2, 2};
  const auto kept = [&](int top_k) {
    std::vector<TokenId> tokens;
    for (const auto& [token, count] : Sweep(logits, {.top_k = top_k})) tokens.push_back(token);
    return tokens;
  };
  EXPECT_THAT(kept(1), ElementsAre(1));
  EXPECT_THAT(kept(2), ElementsAre(1, 3));
  EXPECT_THAT(kept(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept(4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(kept(6), SizeIs(6));
  EXPECT_THAT(kept(1 << 30), SizeIs(6)) << "more than there are: all";
  EXPECT_THAT(kept(0), SizeIs(6)) << "0: all";
  const std::vector<TokenId> excluded = {1, 3};
  EXPECT_EQ(Sweep(logits, {.excluded = excluded, .top_k = 1}).begin()->first, 2)
      << "counted among those that may be drawn";
}

TEST(DrawTokenTest, TopPKeepsFewestTokensWithTiesToLower) {
  const std::vector<float> flat(8, 1.5f);  // exactly an eighth each
  const auto kept = [&](float top_p, int top_k = 0) {
    std::vector<TokenId> tokens;
    for (const auto& [token, count] : Sweep(flat, {.top_k = top_k, .top_p = top_p}))
      tokens.push_back(token);
    return tokens;
  };
  EXPECT_THAT(kept(1e-6f), ElementsAre(0)) << "never fewer than one";
  EXPECT_THAT(kept(0.125f), ElementsAre(0)) << "one holds an eighth: at least top_p is enough";
  EXPECT_THAT(kept(0.126f), ElementsAre(0, 1));
  EXPECT_THAT(kept(0.5f), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(0.51f), SizeIs(5));
  EXPECT_THAT(kept(1), SizeIs(8));
  EXPECT_THAT(kept(0.5f, 4), ElementsAre(0, 1)) << "of what top_k left";
}

TEST(DrawTokenTest, MinPKeepsTokensBesideTheLikeliest) {
  const std::vector<float> halves = {0, std::log(2.0f), std::log(4.0f), std::log(8.0f)};
  const auto kept = [&](float min_p, float top_p = 1, int top_k = 0) {
    std::vector<TokenId> tokens;
    for (const auto& [token, count] :
         Sweep(halves, {.top_k = top_k, .top_p = top_p, .min_p = min_p}))
      tokens.push_back(token);
    return tokens;
  };
  EXPECT_THAT(kept(0.1f), SizeIs(4)) << "the least likely one has an eighth";
  EXPECT_THAT(kept(0.2f), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept(0.4f), ElementsAre(2, 3));
  EXPECT_THAT(kept(1), ElementsAre(3)) << "never fewer than one";
  EXPECT_THAT(kept(0.1f, 1, 2), ElementsAre(2, 3)) << "of what top_k left";
  EXPECT_THAT(kept(0.1f, 0.5f), ElementsAre(3)) << "of what top_p left, 8 of 15";
}

TEST(DrawTokenTest, NucleusOfLongRowEqualsThatOfASort) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const std::vector<float> logits = RandomModel(seed, 3000, seed % 2 ? 0.5f : 0, 0)({4});
    std::vector<double> p = Softmax(logits);
    std::vector<TokenId> order(p.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    for (float top_p : {0.3f, 0.8f, 0.99f}) {
      double held = 0;
      std::vector<double> expected(p.size());
      for (size_t i = 0; i < order.size() && held < top_p; ++i) {
        expected[order[i]] = p[order[i]];
        held += p[order[i]];
      }
      // The smallest and largest draws give the first and the last kept token by id.
      const LogitRow row = {.logits = logits, .log_normalizer = LogNormalizer(logits, 1)};
      const auto first = DrawToken(row, {.top_p = top_p}, 0);
      const auto last = DrawToken(row, {.top_p = top_p}, 1 - 0x1p-53);
      const auto stays = [](double each) { return each > 0; };
      EXPECT_EQ(first->token,
                std::find_if(expected.begin(), expected.end(), stays) - expected.begin());
      EXPECT_EQ(last->token,
                expected.rend() - std::find_if(expected.rbegin(), expected.rend(), stays) - 1);
    }
  }
}

TEST(DrawTokenTest, AppliesPenaltyToFrequencyAndScore) {
  const std::vector<float> logits = {0, 0, 0, 0};
  const std::vector<TokenId> excluded = {3};
  const Adjustment half = {.token = 3, .penalty = std::log(2.0f)};
  const SamplingParameters sampling = {.excluded = excluded, .adjusted = {&half, 1}};
  EXPECT_NEAR(Sweep(logits, sampling, 7000).at(3), 1000, 1);
  const LogitRow row = {.logits = logits, .log_normalizer = LogNormalizer(logits, 1)};
  const auto drawn = DrawToken(row, sampling, 0.999);
  EXPECT_EQ(drawn->token, 3);
  EXPECT_FLOAT_EQ(drawn->log_probability, -std::log(4.0f) - std::log(2.0f));
  EXPECT_EQ(Sweep(logits, {.excluded = excluded, .adjusted = {&half, 1}, .top_k = 3}).size(), 3)
      << "the penalised one is the fourth";
}

TEST(DrawTokenTest, NeverDrawsNaNOrImpossibleTokens) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {nan, 1, never, 1, nan};
  for (const SamplingParameters& sampling :
       {SamplingParameters{}, SamplingParameters{.top_k = 4}, SamplingParameters{.top_p = 0.9f},
        SamplingParameters{.top_k = 5, .top_p = 0.7f}}) {
    const LogitRow row = {.logits = logits, .log_normalizer = 1};
    for (double u : {0.0, 0.3, 0.7, 1 - 0x1p-53}) {
      const TokenId token = DrawToken(row, sampling, u)->token;
      EXPECT_TRUE(token == 1 || token == 3) << token;
    }
  }
  const std::vector<float> none = {nan, never};
  EXPECT_FALSE(DrawToken({.logits = none}, {}, 0.5).has_value());
}

// A scenario with sampling: random limits, penalties, prefixes and sampling parameters.
Scenario SamplingScenario(uint32_t seed) {
  Scenario scenario = RandomScenario(seed);
  scenario.options.seed = seed * 7919ull << (seed % 33);
  scenario.options.top_k = std::array{0, 0, 1, 3, 50}[seed % 5];
  scenario.options.top_p = std::array{1.0f, 0.9f, 0.5f}[seed % 3];
  return scenario;
}

std::vector<Hypothesis> Drawn(const SearchOptions& options, const ToyModel& model) {
  const absl::StatusOr<Outcome> outcome = RunSearch(options, {}, model);
  EXPECT_THAT(outcome, IsOk());
  return outcome.ok() ? outcome->hypotheses : std::vector<Hypothesis>{};
}

TEST(SamplingTest, FollowsTheRulesOfTheSearch) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = SamplingScenario(seed);
    const SearchOptions& options = scenario.options;
    const auto outcome = RunSearch(options, scenario.prefix, scenario.model, scenario.special);
    ASSERT_THAT(outcome, IsOk()) << "seed " << seed;
    ASSERT_EQ(outcome->hypotheses.size(), options.beam_size);
    for (const Hypothesis& hypothesis : outcome->hypotheses) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << Describe({hypothesis}));
      const auto& tokens = hypothesis.tokens;
      ASSERT_EQ(tokens.back(), scenario.special.eos);
      ASSERT_EQ(std::count(tokens.begin(), tokens.end(), scenario.special.eos), 1);
      ASSERT_EQ(std::count(tokens.begin(), tokens.end(), scenario.special.pad), 0);
      ASSERT_GT(std::ssize(tokens), options.min_target_tokens);
      ASSERT_LE(std::ssize(tokens) - 1, options.max_target_tokens);
      ASSERT_EQ(hypothesis.ended_by_limit, std::ssize(tokens) - 1 == options.max_target_tokens);
      const size_t forced = std::min<size_t>(scenario.prefix.size(), options.max_target_tokens);
      ASSERT_TRUE(
          std::equal(scenario.prefix.begin(), scenario.prefix.begin() + forced, tokens.begin()));
    }
    ASSERT_TRUE(
        std::is_sorted(outcome->hypotheses.begin(), outcome->hypotheses.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; }));
    ASSERT_EQ(outcome->stable.back(), outcome->hypotheses.front().tokens);
  }
}

TEST(SamplingTest, ScoresSamplesLikeGivenTargets) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const Scenario scenario = SamplingScenario(seed);
    const auto drawn = RunSearch(scenario);
    ASSERT_THAT(drawn, IsOk());
    for (Hypothesis hypothesis : drawn->hypotheses) {
      const auto scored = RunSearch(Scorer({.options = scenario.options,
                                            .special = scenario.special,
                                            .target = hypothesis.tokens}),
                                    scenario.options.temperature, scenario.model);
      hypothesis.ended_by_limit = false;
      ASSERT_TRUE(SameBits(scored->hypotheses, {hypothesis})) << "seed " << seed;
    }
  }
}

TEST(SamplingTest, PartialRowsGiveTheResultsOfWholeOnes) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = SamplingScenario(seed);
    const auto whole = RunSearch(scenario);
    const auto cut = RunSearch(scenario, Rows::kCut);
    ASSERT_THAT(cut, IsOk()) << "seed " << seed;
    ASSERT_TRUE(SameBits(cut->hypotheses, whole->hypotheses)) << "seed " << seed;
  }
}

TEST(SamplingTest, TopKOfOneEqualsGreedySearch) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Scenario scenario = RandomScenario(seed);
    scenario.options.beam_size = scenario.options.n_best = 1;
    const auto greedy = RunSearch(scenario);
    scenario.options.top_k = 1;
    const auto drawn = RunSearch(scenario);
    ASSERT_THAT(drawn, IsOk());
    ASSERT_TRUE(SameBits(drawn->hypotheses, greedy->hypotheses)) << "seed " << seed;
  }
}

TEST(SamplingTest, DrawsDoNotDependOnTheNumberOfTargets) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Scenario scenario = SamplingScenario(seed);
    scenario.options.beam_size = scenario.options.n_best = 6;
    const auto of_six = RunSearch(scenario);
    scenario.options.beam_size = scenario.options.n_best = 2;
    const auto of_two = RunSearch(scenario);
    ASSERT_THAT(of_two, IsOk());
    std::vector<Hypothesis> six = of_six->hypotheses;
    for (const Hypothesis& one : of_two->hypotheses) {
      const auto same = std::find_if(
          six.begin(), six.end(), [&](const Hypothesis& each) { return SameBits({each}, {one}); });
      ASSERT_NE(same, six.end()) << "seed " << seed;
      six.erase(same);
    }
  }
}

TEST(SamplingTest, UnsetSeedIsZero) {
  const ToyModel model = RandomModel(9, 200, 0, -2);
  SearchOptions options = {.beam_size = 1, .max_target_tokens = 20, .top_k = 100};
  const std::vector<Hypothesis> unset = Drawn(options, model);
  options.seed = 0;
  EXPECT_TRUE(SameBits(Drawn(options, model), unset));
  options.seed = 1;
  EXPECT_FALSE(SameBits(Drawn(options, model), unset));
}

TEST(SamplingTest, TopKBeyondTheVocabularyLeavesOutNothing) {
  const ToyModel model = RandomModel(9, 200, 0, -2);
  SearchOptions options = {.beam_size = 1, .max_target_tokens = 20, .top_k = 200, .seed = 5};
  const std::vector<Hypothesis> all = Drawn(options, model);
  for (const int top_k : {201, 2000, std::numeric_limits<int>::max()}) {
    options.top_k = top_k;
    EXPECT_TRUE(SameBits(Drawn(options, model), all)) << top_k;
    const RowNeed need = NewSearch({options, kSpecial})->need(0);
    EXPECT_TRUE(need.all || need.best >= top_k) << top_k;
  }
}

// All targets of a model that ends after at most three tokens, with their probabilities.
std::map<std::vector<TokenId>, double> AllTargets(const ToyModel& model,
                                                  const SearchOptions& options) {
  std::map<std::vector<TokenId>, double> all;
  std::function<void(std::vector<TokenId>, double)> walk = [&](std::vector<TokenId> target,
                                                               double so_far) {
    if (std::ssize(target) == options.max_target_tokens) {
      target.push_back(kSpecial.eos);
      all[target] += so_far;
      return;
    }
    std::vector<float> logits = model(target);
    logits[kSpecial.pad] = -INFINITY;
    if (std::ssize(target) < options.min_target_tokens) logits[kSpecial.eos] = -INFINITY;
    std::vector<double> p = Softmax(logits, options.temperature);
    if (options.top_k > 0) {
      std::vector<double> sorted = p;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      double total = 0;
      for (double& each : p) {
        if (each < sorted[options.top_k - 1]) each = 0;
        total += each;
      }
      for (double& each : p) each /= total;
    }
    for (TokenId token = 0; token < std::ssize(p); ++token) {
      if (p[token] == 0) continue;
      std::vector<TokenId> next = target;
      next.push_back(token);
      if (token == kSpecial.eos) {
        all[next] += so_far * p[token];
      } else {
        walk(next, so_far * p[token]);
      }
    }
  };
  walk({}, 1);
  return all;
}

TEST(SamplingTest, SamplesTargetsByProbability) {
  const ToyModel model = RandomModel(11, 7, 0, 1);
  for (SearchOptions options :
       {SearchOptions{.seed = 1}, {.temperature = 0.6f, .seed = 2}, {.top_k = 3, .seed = 3}}) {
    options.max_target_tokens = 3;
    options.min_target_tokens = 1;
    options.beam_size = options.n_best = 8;
    const auto expected = AllTargets(model, options);
    std::map<std::vector<TokenId>, int> seen;
    for (int request = 0; request < 4000; ++request) {
      options.seed = *options.seed + 10;
      for (const Hypothesis& drawn : Drawn(options, model)) ++seen[drawn.tokens];
    }
    std::vector<double> counts, probabilities;
    for (const auto& [target, probability] : expected) {
      counts.push_back(seen[target]);
      probabilities.push_back(probability);
      seen.erase(target);
    }
    EXPECT_TRUE(seen.empty()) << "a target that cannot be";
    ExpectFrequencies(counts, probabilities);
  }
}

}  // namespace
}  // namespace linnet::model
