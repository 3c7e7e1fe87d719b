#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/runtime/search/constraints.h"
#include "model/runtime/search/row_edit.h"
#include "model/runtime/search/search_options.h"
#include "model/runtime/search/spelled_start.h"
#include "model/runtime/search/target_length.h"
#include "model/runtime/search/token.h"
#include "model/runtime/search/token_grammar.h"

namespace linnet::model {

// What a search is asked for. The options have passed CheckOptions.
struct SearchSpec {
  SearchOptions options = {};
  SpecialTokens special = {};
  // Forced as the start of every hypothesis, up to max_target_tokens of it; without eos.
  std::vector<TokenId> prefix = {};
  Constraints constraints = {};  // not with sampling
  std::shared_ptr<const TokenGrammar> grammar = nullptr;
  // Forced before everything else: the decoder reads these tokens as target tokens, but results and
  // stable prefixes leave them out, and the limits on target tokens do not count them. Their
  // log-probability is 0; the length that divides a score, and the rules against repeats, include
  // them, as in Hugging Face's transformers.
  std::vector<TokenId> silent = {};
  std::shared_ptr<const TargetLength> length = nullptr;
  // A target to score, eos last and nowhere else; nothing is searched. No prefix and constraints.
  std::optional<std::vector<TokenId>> target = std::nullopt;
  // What every hypothesis spells behind the prefix; null: nothing. Not with sampling.
  std::shared_ptr<const SpelledStart> start = nullptr;

  int silent_tokens() const { return static_cast<int>(silent.size()); }
  // Tokens that every hypothesis begins with: the silent ones, then the prefix or the target.
  std::vector<TokenId> known_start() const {
    std::vector<TokenId> tokens = silent;
    const std::vector<TokenId>& rest = target.has_value() ? *target : prefix;
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return tokens;
  }
};

// A live hypothesis for which a step chooses the next token.
struct LiveHypothesis {
  int number = 0;
  int position = 0;                 // number of its tokens
  int left = 0;                     // tokens that may follow the next one before eos is forced
  std::span<const TokenId> tokens;  // without the start token
  std::span<const TokenId> target;  // without the silent tokens as well
};

// Live hypothesis `parent` extended by `token`.
struct Continuation {
  int parent = 0;
  TokenId token = 0;
  std::span<const TokenId> target;  // with the token; empty as long as tokens are silent
};

// The rules of a step as data, for a search on the device (ops/search/beam_params.h), which applies
// the grammar by itself.
struct StepRules {
  TokenId forced = kNoToken;
  bool silent = false;  // the log-probability of the forced token is 0
  bool may_end = true;  // false: eos is forbidden
  int left = 0;         // tokens that may follow the next one before eos is forced
  int no_repeat_ngram_size = 0;
  int max_ngram_repeats = 0;
  float unknown_penalty = 0;
};

// A rule of a search: what it says about the next token of each hypothesis. A search applies its
// rules once per step and live hypothesis; they edit what the search knows of a row and never see
// the logits, so that no virtual call is made per token of the vocabulary.
//
// A search owns its rules, which may keep state per live hypothesis. Not thread-safe.
class Rule {
 public:
  virtual ~Rule() = default;

  // Adds what the rule says to `edit`.
  virtual void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) = 0;
  // True for a rule that changes scores, also those of tokens that are forced. The other rules do
  // not apply where a token is forced.
  virtual bool adjusts_scores() const { return false; }
  // Follows a step: the live hypotheses are now these.
  virtual void Follow(std::span<const Continuation> /*live*/) {}
  // Adds the rule to the data of the step after `position` tokens. False: the rule has no such
  // form, and the sequence is searched on the host.
  virtual bool Describe(int /*position*/, StepRules& /*rules*/) const { return false; }
};

}  // namespace linnet::model
