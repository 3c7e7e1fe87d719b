// Tests of lexically constrained search.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
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
  int contained = -1;                   // in the tokens begun; `met` has it, too
  std::vector<TokenId> continued = {};  // tokens that continue what was begun

  int bank(const Phrases& phrases) const {
    int tokens = begun;
    for (int i = 0; i < std::ssize(met); ++i)
      tokens += met[i] && i != contained ? static_cast<int>(phrases[i].size()) : 0;
    return tokens;
  }
  bool just_met(const Phrases& phrases) const {
    return contained >= 0 && std::cmp_equal(phrases[contained].size(), begun);
  }
  int unmet() const { return static_cast<int>(std::count(met.begin(), met.end(), false)); }
};

// The unmet phrases that start with `tokens`, in the order of their numbers.
std::vector<int> StartingWith(const Phrases& phrases, const std::vector<bool>& met,
                              std::span<const TokenId> tokens) {
  std::vector<int> found;
  for (int i = 0; i < std::ssize(phrases); ++i) {
    if (!met[i] && phrases[i].size() >= tokens.size() &&
        std::equal(tokens.begin(), tokens.end(), phrases[i].begin()))
      found.push_back(i);
  }
  return found;
}

// Reads the target from its start, phrase by phrase.
SlowProgress SlowProgressOf(const Phrases& phrases, const std::vector<TokenId>& continuations,
                            const std::vector<TokenId>& target) {
  const std::span<const TokenId> tokens(target);
  std::vector<bool> met(phrases.size());
  const auto ends_word = [&](size_t end) {
    return end == target.size() ||
           std::count(continuations.begin(), continuations.end(), target[end]) == 0;
  };
  for (size_t start = 0; start < target.size();) {
    int whole = -1;
    std::vector<int> starting;
    size_t end = start + 1;
    for (; end <= target.size(); ++end) {
      starting = StartingWith(phrases, met, tokens.subspan(start, end - start));
      if (starting.empty()) break;
      const auto ended =
          std::ranges::find_if(starting, [&](int i) { return phrases[i].size() == end - start; });
      if (ended != starting.end() && ends_word(end)) whole = *ended;
    }
    if (whole >= 0) met[whole] = true;
    if (end > target.size()) {
      SlowProgress progress{.met = met, .begun = static_cast<int>(target.size() - start)};
      for (int i : starting) {
        if (std::cmp_less(progress.begun, phrases[i].size()))
          progress.continued.push_back(phrases[i][progress.begun]);
      }
      progress.contained = whole;
      return progress;
    }
    start += whole >= 0 ? phrases[whole].size() : 1;
  }
  return {.met = met};
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
      const SlowProgress before = SlowProgressOf(phrases, continuations, beams[b].tokens);
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
        if (!end && step >= std::ssize(prefix) && before.just_met(phrases) &&
            std::ranges::count(before.continued, token) == 0 &&
            std::count(continuations.begin(), continuations.end(), token) > 0) {
          continue;
        }
        const float score = logits[token] / options.temperature - normalizer;
        all.push_back({beams[b].sum + score, score, logits[token], b, token});
        std::vector<TokenId> longer = beams[b].tokens;
        longer.push_back(token);
        const SlowProgress after = SlowProgressOf(phrases, continuations, longer);
        if (!end && after.begun > 0) chosen.insert({b, token});
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
      const int bank = SlowProgressOf(phrases, continuations, tokens).bank(phrases);
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
             .unmet_constraints =
                 SlowProgressOf(phrases, continuations, beams[entry.beam].tokens).unmet()});
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
  return RunSearch(BeamSearch({scenario.options, kSpecial, scenario.prefix, Constrain(scenario)}),
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
    const auto plain = RunSearch(BeamSearch({scenario.options, scenario.special, scenario.prefix}),
                                 scenario.options.temperature, scenario.model);
    const auto none =
        RunSearch(BeamSearch({scenario.options, scenario.special, scenario.prefix, Constraints()}),
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
  EXPECT_TRUE(BeamSearch({{.beam_size = 2}, kSpecial, {}, Constraints(Phrases{{5}})}).need(0).all);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ConstrainedScenario scenario = RandomConstrainedScenario(seed);
    const auto cut = Decode(scenario, Rows::kCut);
    ASSERT_THAT(cut, IsOk());
    ASSERT_TRUE(SameBits(cut->hypotheses, Decode(scenario)->hypotheses)) << "seed " << seed;
  }
}

// A hypothesis that says tokens.
struct Said {
  explicit Said(const Constraints& constraints) : constraints(constraints) {}
  Said& Say(std::vector<TokenId> more) {
    for (TokenId token : more) {
      tokens.push_back(token);
      progress = constraints.After(progress, tokens);
    }
    return *this;
  }
  int bank() const { return constraints.Bank(progress); }
  int unmet() const { return constraints.Unmet(progress); }
  std::vector<TokenId> next() const { return constraints.Next(progress, tokens); }
  std::vector<TokenId> forbidden() const { return constraints.Forbidden(progress, tokens); }

  const Constraints& constraints;
  std::vector<TokenId> tokens;
  Constraints::Progress progress;
};

TEST(ConstraintsTest, TokenCountsForOnePhraseAndBrokenPhraseRestarts) {
  const Constraints constraints({{5, 6, 7}, {6}, {5, 6}});
  Said said(constraints);
  EXPECT_EQ(said.Say({5}).bank(), 1);
  EXPECT_EQ(said.Say({5}).bank(), 1) << "the first 5 is given up";
  EXPECT_EQ(said.Say({6}).bank(), 2);
  EXPECT_EQ(said.unmet(), 2) << "the shorter phrase is met, and its 6 is no other's";
  EXPECT_THAT(said.next(), ElementsAre(5, 6, 7));
  EXPECT_EQ(said.Say({7}).bank(), 3);
  EXPECT_EQ(said.unmet(), 2) << "the longer phrase is met in place of the shorter";
  EXPECT_EQ(said.Say({6}).bank(), 4);
  EXPECT_THAT(said.next(), ElementsAre(5));
  EXPECT_EQ(said.Say({5}).bank(), 5);
  EXPECT_THAT(said.next(), ElementsAre(5, 6));
  EXPECT_EQ(said.Say({6}).bank(), 6);
  EXPECT_EQ(said.unmet(), 0);
  EXPECT_THAT(said.next(), ElementsAre());
}

TEST(ConstraintsTest, PhrasesWithACommonStartAreMetInEitherOrder) {
  const Constraints constraints({{5}, {5, 6, 7}});
  EXPECT_EQ(Said(constraints).Say({5, 6, 7, 9, 5}).unmet(), 0);
  EXPECT_EQ(Said(constraints).Say({5, 9, 5, 6, 7}).unmet(), 0);
  EXPECT_EQ(Said(constraints).Say({5, 6, 9, 5, 6, 7}).unmet(), 0) << "the longer one breaks off";
  EXPECT_EQ(Said(constraints).Say({5, 6, 7}).unmet(), 1);
  EXPECT_THAT(constraints.UnmetBy(std::vector<TokenId>{5, 6, 7}), ElementsAre(0));
  EXPECT_THAT(constraints.UnmetBy(std::vector<TokenId>{5, 6}), ElementsAre(1));
}

TEST(ConstraintsTest, PhraseInsideOneThatBreaksOffIsMet) {
  const Constraints constraints({{5, 6, 7}, {6, 8}, {6}});
  EXPECT_THAT(constraints.UnmetBy(std::vector<TokenId>{5, 6, 9}), ElementsAre(0, 1));
  EXPECT_THAT(constraints.UnmetBy(std::vector<TokenId>{5, 6, 8}), ElementsAre(0, 2));
}

TEST(ConstraintsTest, OnlyALongerPhraseContinuesTheWordThatEndsAPhrase) {
  const auto continuations =
      std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{6, 7});
  const Constraints constraints({{5}, {5, 6, 8}}, continuations);
  EXPECT_THAT(Said(constraints).Say({5}).forbidden(), ElementsAre(7));
  EXPECT_THAT(Said(constraints).Say({5, 6}).forbidden(), ElementsAre());
  EXPECT_THAT(Said(constraints).Say({5, 6, 8}).forbidden(), ElementsAre(6, 7));
  EXPECT_EQ(Said(constraints).Say({5, 6, 9}).unmet(), 2) << "5 is no word of its own";
  EXPECT_EQ(Said(constraints).Say({5, 6, 8, 9, 5}).unmet(), 0);
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
