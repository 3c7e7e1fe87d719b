#include "model/runtime/search/search.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "model/runtime/search/candidates.h"
#include "tests/runtime/search/search_reference.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(BeamSearchTest, EqualsReferenceSearch) {
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const std::vector<Hypothesis> expected =
        ReferenceSearch(scenario.options, scenario.special, scenario.prefix, scenario.model);
    const absl::StatusOr<Outcome> outcome = RunSearch(scenario);
    ASSERT_THAT(outcome, IsOk()) << "seed " << seed;
    ASSERT_EQ(Describe(outcome->hypotheses), Describe(expected)) << "seed " << seed;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(outcome->hypotheses[i].token_scores, expected[i].token_scores) << "seed " << seed;
      ASSERT_EQ(outcome->hypotheses[i].score, expected[i].score) << "seed " << seed;
      ASSERT_EQ(outcome->hypotheses[i].ended_by_limit, expected[i].ended_by_limit)
          << "seed " << seed;
    }
  }
}

TEST(BeamSearchTest, PartialRowsGiveTheResultsOfWholeOnes) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const auto whole = RunSearch(scenario);
    const auto cut = RunSearch(scenario, Rows::kCut);
    ASSERT_THAT(cut, IsOk()) << "seed " << seed;
    ASSERT_TRUE(SameBits(cut->hypotheses, whole->hypotheses)) << "seed " << seed;
    ASSERT_EQ(cut->stable, whole->stable) << "seed " << seed;
  }
}

TEST(BeamSearchTest, ReportsNeedOfEachRow) {
  // Only the forced token of a row is needed.
  const SearchOptions options = {.beam_size = 3, .min_target_tokens = 0, .unknown_penalty = 1};
  const BeamSearch forced({options, kSpecial, {5}});
  EXPECT_EQ(forced.need(0).best, 0);
  EXPECT_EQ(forced.need(0).also, 5);
  const BeamSearch search({options, kSpecial});
  EXPECT_EQ(search.need(0).best, 6 + 2) << "padding and the unknown token may take a place each";
  EXPECT_EQ(search.need(0).also, kSpecial.unk);
  EXPECT_FALSE(search.need(0).all);
}

TEST(BeamSearchTest, RefusesRowsWithoutNeededLogits) {
  BeamSearch search({{.beam_size = 2}, kSpecial, {5}});
  const std::vector<float> logits = {1, 2};
  const std::vector<TokenId> tokens = {4, 6};
  EXPECT_THAT(search.Advance(std::vector<RowLogits>{{.logits = logits, .tokens = tokens}}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("lacks the logit of token 5")));
  EXPECT_THAT(search.Advance(
                  std::vector<RowLogits>{{.logits = logits, .tokens = std::span(tokens).first(1)}}),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(search.Advance(std::vector<RowLogits>{}), StatusIs(absl::StatusCode::kInternal));
}

TEST(BeamSearchTest, ResultsSatisfyTheOptions) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const SearchOptions& options = scenario.options;
    const auto& [bos, pad, eos, unk, start] = scenario.special;
    const absl::StatusOr<Outcome> outcome =
        RunSearch(options, scenario.prefix, scenario.model, scenario.special);
    ASSERT_THAT(outcome, IsOk()) << "seed " << seed;
    ASSERT_FALSE(outcome->hypotheses.empty()) << "seed " << seed;
    const size_t forced = std::min<size_t>(scenario.prefix.size(), options.max_target_tokens);
    for (const Hypothesis& hypothesis : outcome->hypotheses) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << Describe({hypothesis}));
      ASSERT_EQ(hypothesis.tokens.back(), eos);
      ASSERT_EQ(std::count(hypothesis.tokens.begin(), hypothesis.tokens.end(), eos), 1);
      ASSERT_EQ(std::count(hypothesis.tokens.begin(), hypothesis.tokens.end(), pad), 0);
      const int length = static_cast<int>(hypothesis.tokens.size()) - 1;
      ASSERT_GE(length, options.min_target_tokens);
      ASSERT_LE(length, options.max_target_tokens);
      ASSERT_TRUE(std::equal(scenario.prefix.begin(), scenario.prefix.begin() + forced,
                             hypothesis.tokens.begin()));
      ASSERT_EQ(hypothesis.token_scores.size(), hypothesis.tokens.size());
      const float sum =
          std::accumulate(hypothesis.token_scores.begin(), hypothesis.token_scores.end(), 0.0f);
      ASSERT_FLOAT_EQ(hypothesis.score, options.normalize_scores
                                            ? sum / std::pow(length + 1.0f, options.length_penalty)
                                            : sum);
    }
  }
}

TEST(BeamSearchTest, StablePrefixNeverShrinksAndEndsAsTheBestResult) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const absl::StatusOr<Outcome> outcome = RunSearch(scenario);
    ASSERT_THAT(outcome, IsOk());
    ASSERT_TRUE(StablePrefixesHold(*outcome)) << "seed " << seed;
  }
}

TEST(BeamSearchTest, GreedyPicksTheLikeliestTokenOfEachStep) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ToyModel model = RandomModel(seed, 40, 0, 1);
    SearchOptions options = {.beam_size = 1, .min_target_tokens = 0, .max_target_tokens = 15};
    std::vector<TokenId> expected;
    while (expected.empty() || expected.back() != kSpecial.eos) {
      std::vector<float> logits = model(expected);
      logits[kSpecial.pad] = -1000;
      const auto best = std::max_element(logits.begin(), logits.end());
      expected.push_back(expected.size() == 15 ? kSpecial.eos
                                               : static_cast<TokenId>(best - logits.begin()));
    }
    const absl::StatusOr<Outcome> outcome = RunSearch(options, {}, model);
    ASSERT_THAT(outcome, IsOk());
    ASSERT_EQ(outcome->hypotheses.front().tokens, expected) << "seed " << seed;
    // With one hypothesis all tokens are stable.
    ASSERT_THAT(outcome->stable.front(), SizeIs(1));
  }
}

TEST(BeamSearchTest, StartsWithTheStartTokenAndNeverEmitsPadding) {
  const SpecialTokens marian = MarianSpecial(6);
  EXPECT_THAT(BeamSearch({{.beam_size = 2}, marian}).tokens(), ElementsAre(marian.pad));
  const ToyModel padding_is_likeliest = [](const std::vector<TokenId>& target) {
    return std::vector<float>{static_cast<float>(target.size()), -1, 1, 2, 0, 50};
  };
  const auto outcome = RunSearch({.beam_size = 2, .n_best = 2}, {}, padding_is_likeliest, marian);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_THAT(outcome->hypotheses[0].tokens, ElementsAre(3, 3, 0));
  EXPECT_THAT(outcome->hypotheses[1].tokens, ElementsAre(3, 0));
}

TEST(BeamSearchTest, NGramRuleIncludesTheStartToken) {
  // 4 is the likeliest, then 3, then eos.
  const ToyModel model = [](const std::vector<TokenId>&) {
    return std::vector<float>{-9, -9, 0, 1, 3, -9};
  };
  const SearchOptions options = {.beam_size = 1, .max_target_tokens = 4, .no_repeat_ngram_size = 2};
  const auto tokens = [&](TokenId start) {
    return RunSearch(options, {}, model, {.start = start})->hypotheses[0].tokens;
  };
  EXPECT_THAT(tokens(kSpecial.eos), ElementsAre(4, 4, 3, 4, 2));
  EXPECT_THAT(tokens(4), ElementsAre(4, 3, 4, 2)) << "4 4 stands at the start already";
}

TEST(BeamSearchTest, DropsEosRankedBelowTheBeam) {
  // Beam 1: eos comes second at the first step and first at the second.
  const ToyModel model = [](const std::vector<TokenId>& target) {
    return target.empty() ? std::vector<float>{-9, -9, 2, -9, 3}
                          : std::vector<float>{-9, -9, 3, -9, 2};
  };
  const auto outcome = RunSearch({.beam_size = 1, .min_target_tokens = 0}, {}, model);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_THAT(outcome->hypotheses.front().tokens, ElementsAre(4, 2));
}

TEST(BeamSearchTest, ForcesEosAtTheLimitAndScoresIt) {
  const ToyModel never = [](const std::vector<TokenId>&) {
    return std::vector<float>{0, 0, -20, 0, 1, 0};
  };
  const auto outcome = RunSearch({.beam_size = 2, .max_target_tokens = 3}, {}, never);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->steps, 4);
  ASSERT_THAT(outcome->hypotheses, SizeIs(1));
  EXPECT_THAT(outcome->hypotheses[0].tokens, ElementsAre(4, 4, 4, 2));
  EXPECT_TRUE(outcome->hypotheses[0].ended_by_limit);
  EXPECT_LT(outcome->hypotheses[0].token_scores.back(), -20);
}

TEST(BeamSearchTest, EmptyTargetIsEosOnly) {
  const auto outcome = RunSearch({.beam_size = 3, .min_target_tokens = 0, .max_target_tokens = 0},
                                 {}, RandomModel(1, 10, 0, 0));
  ASSERT_THAT(outcome, IsOk());
  ASSERT_THAT(outcome->hypotheses, SizeIs(1));
  EXPECT_THAT(outcome->hypotheses[0].tokens, ElementsAre(2));
}

TEST(BeamSearchTest, HasOneHypothesisWhileAPrefixIsForced) {
  BeamSearch search({{.beam_size = 4}, kSpecial, {5, 6}});
  const std::vector<float> logits = {0, 0, 1, 0, 9, 1, 1, 1};
  const float normalizer = LogNormalizer(logits, 1);
  ASSERT_THAT(search.Advance(logits, std::vector<float>{normalizer}), IsOk());
  EXPECT_THAT(search.tokens(), ElementsAre(5));
  ASSERT_THAT(search.Advance(logits, std::vector<float>{normalizer}), IsOk());
  EXPECT_THAT(search.tokens(), ElementsAre(6));
  EXPECT_THAT(search.StablePrefix(), ElementsAre(5, 6));
  ASSERT_THAT(search.Advance(logits, std::vector<float>{normalizer}), IsOk());
  EXPECT_EQ(search.live(), 4);
  EXPECT_THAT(search.parents(), Each(0));
}

TEST(BeamSearchTest, PrefixMayRepeatNGrams) {
  const auto outcome =
      RunSearch({.beam_size = 2, .max_target_tokens = 8, .no_repeat_ngram_size = 2}, {5, 5, 5},
                RandomModel(3, 12, 0, 0));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(std::vector<TokenId>(outcome->hypotheses[0].tokens.begin(),
                                 outcome->hypotheses[0].tokens.begin() + 3),
            std::vector<TokenId>({5, 5, 5}));
}

TEST(BeamSearchTest, UnigramRuleForbidsRepeatsButNotEos) {
  const auto outcome =
      RunSearch({.beam_size = 3, .max_target_tokens = 9, .no_repeat_ngram_size = 1}, {},
                RandomModel(4, 30, 0, 0));
  ASSERT_THAT(outcome, IsOk());
  for (std::vector<TokenId> tokens = outcome->hypotheses[0].tokens; !tokens.empty();
       tokens.pop_back()) {
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), tokens.back()), 1);
  }
}

TEST(BeamSearchTest, BreaksTiesByLowerToken) {
  const ToyModel flat = [](const std::vector<TokenId>&) { return std::vector<float>(1000, 0.5f); };
  const auto outcome = RunSearch({.beam_size = 1, .max_target_tokens = 2}, {}, flat);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_THAT(outcome->hypotheses[0].tokens, ElementsAre(0, 0, 2));
}

TEST(BeamSearchTest, NeverSelectsNaN) {
  const ToyModel model = [](const std::vector<TokenId>& target) {
    std::vector<float> logits(700, std::numeric_limits<float>::quiet_NaN());
    logits[2] = target.size();
    logits[4] = 1;
    logits[650] = 2;
    return logits;
  };
  const auto outcome = RunSearch({.beam_size = 2, .n_best = 2}, {}, model);
  ASSERT_THAT(outcome, IsOk());
  for (const Hypothesis& hypothesis : outcome->hypotheses) {
    for (TokenId token : hypothesis.tokens) {
      EXPECT_TRUE(token == 2 || token == 4 || token == 650) << token;
    }
  }
}

TEST(BeamSearchTest, RowOfNaNIsAnErrorWithTheStep) {
  BeamSearch search({{.beam_size = 2}, kSpecial});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(search.Advance(std::vector<float>(8, nan), std::vector<float>{nan}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("target token 0")));
}

TEST(BeamSearchTest, RefusesRowsOfWrongShape) {
  BeamSearch search({{.beam_size = 2}, kSpecial});
  EXPECT_THAT(search.Advance(std::vector<float>(8), std::vector<float>(2)),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(search.Advance(std::vector<float>(3), std::vector<float>(1)),
              StatusIs(absl::StatusCode::kInternal));
}

TEST(BeamSearchTest, RefusesPrefixOutsideTheVocabulary) {
  BeamSearch search({{.beam_size = 2}, kSpecial, {8}});
  EXPECT_THAT(search.Advance(std::vector<float>(8), std::vector<float>(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8")));
}

TEST(BeamSearchTest, FinishedSearchHasNoRows) {
  BeamSearch search({{.beam_size = 2, .min_target_tokens = 0, .max_target_tokens = 0}, kSpecial});
  EXPECT_EQ(search.live(), 1);
  EXPECT_THAT(search.tokens(), ElementsAre(kSpecial.eos));
  ASSERT_THAT(search.Advance(std::vector<float>(8), std::vector<float>{std::log(8.0f)}), IsOk());
  EXPECT_TRUE(search.finished());
  EXPECT_EQ(search.live(), 0);
  EXPECT_THAT(search.parents(), IsEmpty());
  EXPECT_THAT(search.Advance({}, {}), StatusIs(absl::StatusCode::kInternal));
}

TEST(TopCandidatesTest, ScanEqualsSort) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const int vocabulary = std::uniform_int_distribution<int>(1, 2000)(random);
    const int capacity = std::uniform_int_distribution<int>(1, 20)(random);
    std::vector<float> logits(vocabulary);
    for (float& logit : logits) logit = std::round(std::normal_distribution<float>(0, 8)(random));
    std::vector<TokenId> excluded;
    std::vector<Candidate> expected;
    for (TokenId token = 0; token < vocabulary; ++token) {
      if (random() % 10 == 0) {
        excluded.push_back(token);
      } else {
        expected.push_back({1 + logits[token], logits[token], 0, token, logits[token]});
      }
    }
    std::sort(expected.begin(), expected.end(), Better);
    if (expected.size() > capacity) expected.resize(capacity);
    TopCandidates top(capacity);
    PushRow({.logits = logits, .sum = 1}, excluded, top);
    const std::vector<Candidate> found = top.Take();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].token, expected[i].token) << "round " << round << " rank " << i;
      ASSERT_EQ(found[i].sum, expected[i].sum);
    }
  }
}

}  // namespace
}  // namespace linnet::model
