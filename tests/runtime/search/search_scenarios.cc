#include "tests/runtime/search/search_scenarios.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace linnet::model {
namespace {

// A row with only the logits that are needed.
struct CutRow {
  std::vector<float> logits;
  std::vector<TokenId> tokens;
};

CutRow Cut(const std::vector<float>& row, const RowNeed& need) {
  CutRow cut;
  cut.tokens.resize(row.size());
  std::iota(cut.tokens.begin(), cut.tokens.end(), 0);
  std::stable_sort(cut.tokens.begin(), cut.tokens.end(),
                   [&](TokenId a, TokenId b) { return row[a] > row[b]; });
  if (!need.all && need.best < std::ssize(cut.tokens)) cut.tokens.resize(need.best);
  if (need.also >= 0 && need.also < std::ssize(row)) cut.tokens.push_back(need.also);
  std::mt19937 random(static_cast<uint32_t>(cut.tokens.size()));
  std::shuffle(cut.tokens.begin(), cut.tokens.end(), random);
  for (TokenId token : cut.tokens) cut.logits.push_back(row[token]);
  return cut;
}

}  // namespace

absl::StatusOr<Outcome> RunSearch(Search&& search, float temperature, const ToyModel& model,
                                  Rows rows) {
  std::vector<std::vector<TokenId>> states(1);
  Outcome outcome;
  while (!search.finished()) {
    std::vector<float> logits, normalizers;
    std::vector<CutRow> cut;
    for (int i = 0; i < search.live(); ++i) {
      const std::vector<float> row = model(states[i]);
      logits.insert(logits.end(), row.begin(), row.end());
      normalizers.push_back(LogNormalizer(row, temperature));
      if (rows == Rows::kCut) cut.push_back(Cut(row, search.need(i)));
    }
    std::vector<RowLogits> given;
    const size_t vocabulary = logits.size() / normalizers.size();
    for (int i = 0; i < std::ssize(cut); ++i) {
      given.push_back(
          {.logits = cut[i].logits, .tokens = cut[i].tokens, .log_normalizer = normalizers[i]});
      if (search.suffices(i, given[i])) continue;
      ++outcome.rows_asked_again;
      given[i] = {.logits = std::span(logits).subspan(i * vocabulary, vocabulary),
                  .log_normalizer = normalizers[i]};
    }
    const absl::Status status =
        rows == Rows::kCut ? search.Advance(given) : search.Advance(logits, normalizers);
    if (!status.ok()) return status;
    std::vector<std::vector<TokenId>> next;
    for (int i = 0; i < search.live(); ++i) {
      next.push_back(states[search.parents()[i]]);
      next.back().push_back(search.tokens()[i]);
    }
    states = next;
    outcome.stable.push_back(search.StablePrefix());
  }
  outcome.hypotheses = search.Results();
  outcome.steps = search.steps();
  return outcome;
}

absl::StatusOr<Outcome> RunSearch(const SearchOptions& options, const std::vector<TokenId>& prefix,
                                  const ToyModel& model, const SpecialTokens& special, Rows rows) {
  return RunSearch(
      std::move(*NewSearch({.options = options, .special = special, .prefix = prefix})),
      options.temperature, model, rows);
}

absl::StatusOr<Outcome> RunSearch(const Scenario& scenario, Rows rows) {
  return RunSearch(scenario.options, scenario.prefix, scenario.model, scenario.special, rows);
}

ToyModel RandomModel(uint32_t seed, int vocabulary, float grain, float eos_bonus, TokenId eos) {
  return [=](const std::vector<TokenId>& target) {
    std::seed_seq sequence(target.begin(), target.end());
    std::vector<uint32_t> mixed(1);
    sequence.generate(mixed.begin(), mixed.end());
    std::mt19937 random(mixed[0] ^ seed);
    std::normal_distribution<float> normal(0, 2);
    std::vector<float> logits(vocabulary);
    for (float& logit : logits) {
      logit = normal(random);
      if (grain > 0) logit = std::round(logit / grain) * grain;
    }
    logits[eos] += eos_bonus;
    return logits;
  };
}

Scenario RandomScenario(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int min, int max) {
    return std::uniform_int_distribution<int>(min, max)(random);
  };
  const int vocabulary = pick(0, 3) == 0 ? pick(250, 600) : pick(6, 20);
  return RandomScenario(random(), vocabulary,
                        pick(0, 2) == 0 ? MarianSpecial(vocabulary) : SpecialTokens{});
}

Scenario RandomScenario(uint32_t seed, int vocabulary, const SpecialTokens& special) {
  std::mt19937 random(seed);
  const auto pick = [&](int min, int max) {
    return std::uniform_int_distribution<int>(min, max)(random);
  };
  Scenario scenario;
  scenario.vocabulary = vocabulary;
  scenario.special = special;
  SearchOptions& options = scenario.options;
  options.beam_size = pick(1, 6);
  options.n_best = options.beam_size;
  options.max_target_tokens = pick(0, 12);
  options.min_target_tokens = pick(0, std::min(3, options.max_target_tokens));
  options.length_penalty = std::array{0.0f, 0.6f, 1.0f, 2.0f}[pick(0, 3)];
  options.unknown_penalty = std::array{0.0f, 0.0f, 3.5f, -2.5f}[pick(0, 3)];
  options.no_repeat_ngram_size = std::array{0, 0, 2, 3}[pick(0, 3)];
  options.max_ngram_repeats = std::array{0, 0, 1, 2}[pick(0, 3)];
  options.normalize_scores = pick(0, 3) != 0;
  options.temperature = std::array{1.0f, 1.0f, 0.5f, 1.7f}[pick(0, 3)];
  for (int i = pick(-4, 3); i > 0; --i) scenario.prefix.push_back(pick(3, vocabulary - 2));
  scenario.model = RandomModel(seed, vocabulary, std::array{0.0f, 0.25f, 2.0f}[pick(0, 2)],
                               static_cast<float>(pick(-1, 4)), special.eos);
  return scenario;
}

TokenSpelling RandomSpelling(int vocabulary, const SpecialTokens& special) {
  std::mt19937 random(vocabulary);
  TokenSpelling spelling(vocabulary, kSpellsText);
  // Bytes at the edges of the grammar's classes.
  constexpr int kBytes[] = {0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0,
                            0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  std::vector<TokenId> tokens;
  for (TokenId token = 4; token < vocabulary - 1; ++token) tokens.push_back(token);
  std::shuffle(tokens.begin(), tokens.end(), random);
  for (int byte : kBytes) {
    spelling[tokens.back()] = byte;
    tokens.pop_back();
  }
  for (int control : {kSpellsControl, kSpellsControl, kSpellsFirstControl, kSpellsBlank}) {
    spelling[tokens.back()] = control;
    tokens.pop_back();
  }
  spelling[special.bos] = spelling[special.pad] = kSpellsControl;
  if (vocabulary % 2 == 0) spelling[special.unk] = kSpellsControl;
  spelling[special.eos] = kSpellsEnd;
  return spelling;
}

std::shared_ptr<const TokenGrammar> GrammarOf(const TokenSpelling& spelling) {
  std::vector<TokenGrammar::Class> classes;
  for (int spelled : spelling) {
    classes.push_back(spelled >= 0                     ? TokenGrammar::OfByte(spelled)
                      : spelled == kSpellsEnd          ? TokenGrammar::kEnd
                      : spelled == kSpellsControl      ? TokenGrammar::kControl
                      : spelled == kSpellsFirstControl ? TokenGrammar::kFirstControl
                      : spelled == kSpellsBlank        ? TokenGrammar::kBlank
                                                       : TokenGrammar::kText);
  }
  return std::make_shared<const TokenGrammar>(std::move(classes));
}

SpelledScenario RandomSpelledScenario(uint32_t seed) {
  const int vocabulary = seed % 5 == 0 ? 300 : 40 + static_cast<int>(seed % 7);
  const SpecialTokens special = seed % 3 == 0 ? MarianSpecial(vocabulary) : SpecialTokens{};
  SpelledScenario scenario{
      RandomScenario(seed, vocabulary, special), RandomSpelling(vocabulary, special), {}};
  scenario.grammar = GrammarOf(scenario.spelling);
  std::erase_if(scenario.prefix,
                [&](TokenId token) { return scenario.spelling[token] != kSpellsText; });
  return scenario;
}

bool StablePrefixesHold(const Outcome& outcome) {
  const std::vector<TokenId>& best = outcome.hypotheses.front().tokens;
  size_t before = 0;
  for (const std::vector<TokenId>& stable : outcome.stable) {
    if (stable.size() < before || stable.size() > best.size()) return false;
    if (!std::equal(stable.begin(), stable.end(), best.begin())) return false;
    before = stable.size();
  }
  return outcome.stable.back() == best;
}

std::string Describe(const std::vector<Hypothesis>& hypotheses) {
  std::string text;
  for (const Hypothesis& hypothesis : hypotheses) {
    absl::StrAppend(&text, hypothesis.score, ": ", absl::StrJoin(hypothesis.tokens, " "), "\n");
  }
  return text;
}

bool SameBits(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Hypothesis& one, const Hypothesis& other) {
                      return one.tokens == other.tokens && one.token_scores == other.token_scores &&
                             one.score == other.score && one.ended_by_limit == other.ended_by_limit;
                    });
}

}  // namespace linnet::model
