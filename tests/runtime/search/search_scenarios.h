// Scenarios for searches: models that are functions, and the loop of an engine around them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search/beam_search.h"
#include "model/runtime/search/scorer.h"
#include "tests/runtime/search/search_reference.h"

namespace linnet::model {

inline constexpr SpecialTokens kSpecial;
// Marian's ids: no bos; the decoder starts from the padding token, which is the last id.
constexpr SpecialTokens MarianSpecial(int vocabulary) {
  const TokenId pad = vocabulary - 1;
  return {.bos = 0, .pad = pad, .eos = 0, .unk = 1, .start = pad};
}

struct Outcome {
  std::vector<Hypothesis> hypotheses;
  std::vector<std::vector<TokenId>> stable;  // after each step
  int steps = 0;
  int rows_asked_again = 0;  // since they lacked tokens that the grammar allows
};

// The rows that the engine provides: whole rows, or only the needed logits of each, in any order.
enum class Rows { kWhole, kCut };

// Runs a search as an engine does: state (here: the tokens) follows parents() and tokens().
absl::StatusOr<Outcome> RunSearch(Search&& search, float temperature, const ToyModel& model,
                                  Rows rows = Rows::kWhole);
// The same for the search of these options: a beam search, or sampling.
absl::StatusOr<Outcome> RunSearch(const SearchOptions& options, const std::vector<TokenId>& prefix,
                                  const ToyModel& model, const SpecialTokens& special = kSpecial,
                                  Rows rows = Rows::kWhole);

// A model whose logits are a function of seed and tokens. With `grain` > 0 they are multiples of
// it, so that sums tie.
ToyModel RandomModel(uint32_t seed, int vocabulary, float grain, float eos_bonus,
                     TokenId eos = kSpecial.eos);

struct Scenario {
  int vocabulary = 0;
  SpecialTokens special = {};
  SearchOptions options = {};
  std::vector<TokenId> prefix = {};
  ToyModel model;
};

absl::StatusOr<Outcome> RunSearch(const Scenario& scenario, Rows rows = Rows::kWhole);

// Random options of beam search, with sizes small enough that edge cases are frequent.
Scenario RandomScenario(uint32_t seed);
// The same for a given vocabulary and special tokens.
Scenario RandomScenario(uint32_t seed, int vocabulary, const SpecialTokens& special);

// The same for a vocabulary of which some tokens are byte pieces and control pieces, with a prefix
// of whole texts if any. At least 40 tokens.
struct SpelledScenario : Scenario {
  TokenSpelling spelling;
  std::shared_ptr<const TokenGrammar> grammar;
};
SpelledScenario RandomSpelledScenario(uint32_t seed);
// The spelling of all scenarios of that vocabulary, and its grammar.
TokenSpelling RandomSpelling(int vocabulary, const SpecialTokens& special);
std::shared_ptr<const TokenGrammar> GrammarOf(const TokenSpelling& spelling);

// True if the stable prefixes never shrink, are prefixes of the best result, and end as all of it.
bool StablePrefixesHold(const Outcome& outcome);

std::string Describe(const std::vector<Hypothesis>& hypotheses);
bool SameBits(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b);

}  // namespace linnet::model
