// Tests of lexically constrained search.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/engine.h"
#include "model/runtime/search/constraints.h"
#include "model/runtime/search/search.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Phrases = std::vector<std::vector<TokenId>>;

// Progress of a target, computed from its tokens only.
struct SlowProgress {
  std::vector<bool> met;
  int begun = 0;
  bool just_met = false;

  int bank(const Phrases& phrases) const {
    int tokens = begun;
    for (size_t i = 0; i < met.size(); ++i)
      tokens += met[i] ? static_cast<int>(phrases[i].size()) : 0;
    return tokens;
  }
  int unmet() const { return static_cast<int>(std::count(met.begin(), met.end(), false)); }
};

SlowProgress SlowProgressOf(const Phrases& phrases, const std::vector<TokenId>& target) {
  SlowProgress progress{std::vector<bool>(phrases.size())};
  size_t used = 0;  // tokens before here belong to phrases that are met
  for (size_t end = 1; end <= target.size(); ++end) {
    progress.begun = 0;
    progress.just_met = false;
    for (size_t start = used; start < end && progress.begun == 0; ++start) {
      const std::vector<TokenId> last(target.begin() + start, target.begin() + end);
      int whole = -1;
      bool begins = false;
      for (int i = static_cast<int>(phrases.size()) - 1; i >= 0; --i) {
        if (progress.met[i] || phrases[i].size() < last.size()) continue;
        if (!std::equal(last.begin(), last.end(), phrases[i].begin())) continue;
        begins = true;
        if (phrases[i].size() == last.size()) whole = i;
      }
      if (whole >= 0) {
        progress.met[whole] = progress.just_met = true;
        used = end;
        break;
      }
      if (begins) progress.begun = static_cast<int>(last.size());
    }
  }
  return progress;
}

struct Beam {
  std::vector<TokenId> tokens;
  std::vector<float> scores;
  float sum = 0;
};
struct Entry {
  float sum, score, logit;
  int beam;
  TokenId token;
};

// A slow reference: all candidates of every step, with the progress of each computed from its
// tokens, and allocation by one sort. Without n-gram rule and penalty of the unknown token.
std::vector<Hypothesis> ReferenceConstrainedSearch(const SearchOptions& options,
                                                   const Phrases& phrases,
                                                   const std::vector<TokenId>& continuations,
                                                   const std::vector<TokenId>& prefix,
                                                   const ToyModel& model) {
  const auto better = [](const Entry& a, const Entry& b) {
    return std::tuple(b.sum, a.beam, b.logit, a.token) <
           std::tuple(a.sum, b.beam, a.logit, b.token);
  };
  std::vector<Beam> beams(1);
  std::vector<Hypothesis> ended;
  for (int step = 0; step <= options.max_target_tokens && !beams.empty(); ++step) {
    std::vector<Entry> all;
    std::set<std::pair<int, TokenId>> chosen;
    for (int b = 0; b < std::ssize(beams); ++b) {
      const std::vector<float> logits = model(beams[b].tokens);
      const float normalizer = LogNormalizer(logits, options.temperature);
      const SlowProgress before = SlowProgressOf(phrases, beams[b].tokens);
      const Entry* best = nullptr;
      const size_t first = all.size();
      all.reserve(all.size() + logits.size());
      for (TokenId token = 0; token < std::ssize(logits); ++token) {
        const bool end = token == kSpecial.eos;
        if (step >= options.max_target_tokens) {
          if (!end) continue;
        } else if (step < std::ssize(prefix)) {
          if (token != prefix[step]) continue;
        } else if (token == kSpecial.pad ||
                   (end && (step < options.min_target_tokens || before.unmet() > 0))) {
          continue;
        }
        if (!end && step >= std::ssize(prefix) && before.just_met &&
            std::count(continuations.begin(), continuations.end(), token) > 0) {
          continue;
        }
        const float score = logits[token] / options.temperature - normalizer;
        all.push_back({beams[b].sum + score, score, logits[token], b, token});
        std::vector<TokenId> longer = beams[b].tokens;
        longer.push_back(token);
        const SlowProgress after = SlowProgressOf(phrases, longer);
        if (!end && (after.begun > 0 || after.met != before.met)) chosen.insert({b, token});
      }
      for (size_t i = first; i < all.size(); ++i) {
        if (best == nullptr || better(all[i], *best)) best = &all[i];
      }
      if (best != nullptr) chosen.insert({b, best->token});
    }
    std::sort(all.begin(), all.end(), better);
    for (int i = 0; i < std::min<int>(2 * options.beam_size, std::ssize(all)); ++i)
      chosen.insert({all[i].beam, all[i].token});

    std::map<int, int> members;  // of each bank, so far
    std::vector<std::tuple<int, int, Entry>> places;
    for (const Entry& entry : all) {
      if (!chosen.contains({entry.beam, entry.token})) continue;
      std::vector<TokenId> tokens = beams[entry.beam].tokens;
      if (entry.token != kSpecial.eos) tokens.push_back(entry.token);
      const int bank = SlowProgressOf(phrases, tokens).bank(phrases);
      places.push_back({members[bank]++, -bank, entry});
    }
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return std::tuple(std::get<0>(a), std::get<1>(a)) <
             std::tuple(std::get<0>(b), std::get<1>(b));
    });
    if (std::ssize(places) > 2 * options.beam_size) places.resize(2 * options.beam_size);

    std::vector<Beam> next;
    for (int rank = 0; rank < std::ssize(places); ++rank) {
      const Entry& entry = std::get<2>(places[rank]);
      Beam beam = beams[entry.beam];
      beam.tokens.push_back(entry.token);
      beam.scores.push_back(entry.score);
      beam.sum = entry.sum;
      if (entry.token != kSpecial.eos) {
        if (std::ssize(next) < options.beam_size) next.push_back(beam);
      } else if (rank < options.beam_size && std::ssize(ended) < options.beam_size) {
        const float length = static_cast<float>(beam.tokens.size());
        ended.push_back(
            {.tokens = beam.tokens,
             .token_scores = beam.scores,
             .score = beam.sum / std::pow(length, options.length_penalty),
             .ended_by_limit = step == options.max_target_tokens,
             .unmet_constraints = SlowProgressOf(phrases, beams[entry.beam].tokens).unmet()});
      }
    }
    if (std::ssize(ended) == options.beam_size) break;
    beams = next;
  }
  std::stable_sort(ended.begin(), ended.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return std::tuple(a.unmet_constraints, -a.score) < std::tuple(b.unmet_constraints, -b.score);
  });
  return ended;
}

struct ConstrainedScenario {
  SearchOptions options = {};
  Phrases phrases = {};
  std::vector<TokenId> continuations = {};
  std::vector<TokenId> prefix = {};
  ToyModel model = nullptr;
};

// Few tokens, so that phrases overlap, share prefixes, contain each other and repeat; and long
// phrases.
ConstrainedScenario RandomConstrainedScenario(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  ConstrainedScenario scenario;
  const int vocabulary = 6 + below(10);
  scenario.options.beam_size = 2 + below(6);
  scenario.options.n_best = scenario.options.beam_size;
  scenario.options.max_target_tokens = below(14);
  scenario.options.min_target_tokens = below(std::min(3, scenario.options.max_target_tokens + 1));
  scenario.options.length_penalty = static_cast<float>(below(4)) * 0.5f;
  scenario.options.temperature = below(3) == 0 ? 1.7f : 1.0f;
  for (int count = below(5); count > 0; --count) {
    std::vector<TokenId>& phrase = scenario.phrases.emplace_back();
    for (int length = 1 + below(4); length > 0; --length)
      phrase.push_back(4 + below(std::min(vocabulary - 4, 4)));
  }
  for (TokenId token = 4; token < vocabulary; ++token) {
    if (below(4) == 0) scenario.continuations.push_back(token);
  }
  for (int length = below(4) == 0 ? below(4) : 0; length > 0; --length)
    scenario.prefix.push_back(4 + below(vocabulary - 4));
  scenario.model = RandomModel(seed, vocabulary, below(3) == 0 ? 0.5f : 0, below(3));
  return scenario;
}

Constraints Constrain(const ConstrainedScenario& scenario) {
  return Constraints(scenario.phrases,
                     std::make_shared<const std::vector<TokenId>>(scenario.continuations));
}

absl::StatusOr<Outcome> Decode(const ConstrainedScenario& scenario, Rows rows = Rows::kWhole) {
  return RunSearch(BeamSearch(scenario.options, kSpecial, scenario.prefix, Constrain(scenario)),
                   scenario.options.temperature, scenario.model, rows);
}

TEST(ConstrainedSearchTest, EqualsReferenceSearch) {
  int constrained = 0, unmet = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const ConstrainedScenario scenario = RandomConstrainedScenario(seed);
    const std::vector<Hypothesis> expected =
        ReferenceConstrainedSearch(scenario.options, scenario.phrases, scenario.continuations,
                                   scenario.prefix, scenario.model);
    const absl::StatusOr<Outcome> outcome = Decode(scenario);
    ASSERT_THAT(outcome, IsOk()) << "seed " << seed;
    ASSERT_TRUE(SameBits(outcome->hypotheses, expected))
        << "seed " << seed << "\n"
        << Describe(outcome->hypotheses) << "\nexpected\n"
        << Describe(expected);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(outcome->hypotheses[i].unmet_constraints, expected[i].unmet_constraints)
          << "seed " << seed;
    }
    constrained += scenario.phrases.empty() ? 0 : 1;
    unmet += expected.front().unmet_constraints > 0 ? 1 : 0;
  }
  EXPECT_GT(constrained, 2000);
  EXPECT_GT(unmet, 100) << "scenarios must include limits that leave no room";
}

TEST(ConstrainedSearchTest, BestResultContainsAllPhrasesThatFit) {
  int searches = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    ConstrainedScenario scenario = RandomConstrainedScenario(seed);
    size_t tokens = scenario.prefix.size();
    for (const auto& phrase : scenario.phrases) tokens += phrase.size();
    // Enough tokens for all phrases one after the other.
    scenario.options.max_target_tokens = static_cast<int>(2 * tokens) + 4;
    scenario.options.min_target_tokens = 0;
    const absl::StatusOr<Outcome> outcome = Decode(scenario);
    ASSERT_THAT(outcome, IsOk());
    const Hypothesis& best = outcome->hypotheses.front();
    ASSERT_EQ(best.unmet_constraints, 0) << "seed " << seed;
    for (const auto& phrase : scenario.phrases) {
      ASSERT_NE(std::search(best.tokens.begin(), best.tokens.end(), phrase.begin(), phrase.end()),
                best.tokens.end())
          << "seed " << seed;
      ++searches;
    }
  }
  EXPECT_GT(searches, 3000);
}

TEST(ConstrainedSearchTest, PhraseEndsAtTheEndOfAWord) {
  // 7 is always the likeliest, and continues a word.
  const ToyModel model = [](const std::vector<TokenId>& target) {
    std::vector<float> logits = {-9, -9, 0, -9, -9, -9, 2, 6};
    logits[5] = target.size() == 1 ? 5 : -9;
    logits[2] += static_cast<float>(target.size());
    return logits;
  };
  ConstrainedScenario scenario{.options = {.beam_size = 4}, .phrases = {{5}}, .model = model};
  const auto after_5 = [&] {
    const std::vector<TokenId> tokens = Decode(scenario)->hypotheses.front().tokens;
    return *(std::find(tokens.begin(), tokens.end(), 5) + 1);
  };
  EXPECT_EQ(after_5(), 7);
  scenario.continuations = {7};
  EXPECT_NE(after_5(), 7);
}

TEST(ConstrainedSearchTest, EqualsPlainSearchWithoutPhrases) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const auto plain = RunSearch(BeamSearch(scenario.options, scenario.special, scenario.prefix),
                                 scenario.options.temperature, scenario.model);
    const auto none =
        RunSearch(BeamSearch(scenario.options, scenario.special, scenario.prefix, Constraints()),
                  scenario.options.temperature, scenario.model);
    ASSERT_THAT(none, IsOk());
    ASSERT_TRUE(SameBits(none->hypotheses, plain->hypotheses)) << "seed " << seed;
    ASSERT_EQ(none->stable, plain->stable) << "seed " << seed;
  }
}

TEST(ConstrainedSearchTest, StablePrefixNeverShrinksAndEndsAsTheBestResult) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    const absl::StatusOr<Outcome> outcome = Decode(RandomConstrainedScenario(seed));
    ASSERT_THAT(outcome, IsOk());
    ASSERT_TRUE(StablePrefixesHold(*outcome)) << "seed " << seed;
  }
}

TEST(ConstrainedSearchTest, NeedsWholeRows) {
  EXPECT_TRUE(BeamSearch({.beam_size = 2}, kSpecial, {}, Constraints(Phrases{{5}})).need(0).all);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ConstrainedScenario scenario = RandomConstrainedScenario(seed);
    const auto cut = Decode(scenario, Rows::kCut);
    ASSERT_THAT(cut, IsOk());
    ASSERT_TRUE(SameBits(cut->hypotheses, Decode(scenario)->hypotheses)) << "seed " << seed;
  }
}

TEST(ConstraintsTest, TokenCountsForOnePhraseAndBrokenPhraseRestarts) {
  const Constraints constraints({{5, 6, 7}, {6}, {5, 6}});
  Constraints::Progress progress;
  std::vector<TokenId> said;
  const auto say = [&](TokenId token) {
    said.push_back(token);
    progress = constraints.After(progress, said);
    return constraints.Bank(progress);
  };
  EXPECT_EQ(say(5), 1);
  EXPECT_EQ(say(5), 1) << "the first 5 is given up";
  EXPECT_EQ(say(6), 2) << "the shorter phrase is met, and its 6 is no other's";
  EXPECT_EQ(constraints.Unmet(progress), 2);
  EXPECT_EQ(say(7), 2);
  EXPECT_EQ(say(6), 3);
  EXPECT_THAT(constraints.Next(progress, said), ElementsAre(5));
  EXPECT_EQ(say(5), 4);
  EXPECT_THAT(constraints.Next(progress, said), ElementsAre(5, 6));
  EXPECT_EQ(say(6), 5);
  EXPECT_EQ(say(7), 6);
  EXPECT_EQ(constraints.Unmet(progress), 0);
  EXPECT_THAT(constraints.Next(progress, said), ElementsAre());
}

TEST(ConstraintsTest, RefusesUnsatisfiableConstraints) {
  EngineInfo info;
  info.vocabulary_size = info.source_vocabulary_size = 50;
  SequenceInput input;
  input.source = {9, 2};
  input.options.max_target_tokens = 20;
  const auto check = [&](Phrases phrases, SearchOptions options = {.max_target_tokens = 20}) {
    input.constraints = std::move(phrases);
    input.options = options;
    return CheckSequence(input, info);
  };
  const auto refused = [](const char* says) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says));
  };
  EXPECT_THAT(check({{5, 6}, {7}}), IsOk());
  EXPECT_THAT(check({{5}, {}}), refused("a constraint is empty"));
  EXPECT_THAT(check({{50}}), refused("constraint token 50 is outside the vocabulary"));
  EXPECT_THAT(check({{5, 2}}), refused("is the end token"));
  EXPECT_THAT(check({{3}}), refused("contains the unknown token"));
  EXPECT_THAT(check(Phrases(33, {5})), refused("33 constraints are given, at most 32"));
  EXPECT_THAT(check({std::vector<TokenId>(21, 5)}), refused("21 tokens together"));
  EXPECT_THAT(check({{5}}, {.beam_size = 1}), refused("it must be at least 2"));
  EXPECT_THAT(check({{5}}, {.beam_size = 2, .seed = 1}),
              refused("sampling cannot enforce constraints"));
  input.target = {5, 2};
  EXPECT_THAT(check({{5}}), refused("nothing is searched"));
}

}  // namespace
}  // namespace linnet::model
