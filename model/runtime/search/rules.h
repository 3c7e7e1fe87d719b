#pragma once

#include <memory>
#include <vector>

#include "model/runtime/search/rule.h"

namespace linnet::model {

// The rules of a search. Each is in a file of its own in rules/, behind a function that returns
// null if the search does not have the rule.
using NewRule = std::unique_ptr<Rule> (*)(const SearchSpec& spec);

// The start of a target: silent tokens, then a prefix or a whole target; and eos at the limit.
std::unique_ptr<Rule> NewForcedTokens(const SearchSpec& spec);
// A score is lowered by unknown_penalty for each unknown token.
std::unique_ptr<Rule> NewUnknownPenalty(const SearchSpec& spec);
// repetition_penalty: a score is scaled for tokens that the target already has.
std::unique_ptr<Rule> NewRepetitionPenalty(const SearchSpec& spec);
// The phrases that a target must contain are offered (constraint_rule.h).
std::unique_ptr<Rule> NewConstraintRule(const SearchSpec& spec);
// A target is valid text: byte pieces form whole characters, and control pieces occur only in a
// prefix or a phrase (token_grammar.h).
std::unique_ptr<Rule> NewGrammarRule(const SearchSpec& spec);
// The text that a target begins with after its prefix (spelled_start.h).
std::unique_ptr<Rule> NewSpelledStart(const SearchSpec& spec);
// no_repeat_ngram_size and max_ngram_repeats (repeats.h).
std::unique_ptr<Rule> NewNgramRepeats(const SearchSpec& spec);
// No end before min_target_tokens.
std::unique_ptr<Rule> NewMinLength(const SearchSpec& spec);
// The wished length (target_length.h): no end before the target is long enough, and no further word
// once it is full.
std::unique_ptr<Rule> NewWishedLength(const SearchSpec& spec);

// In the order in which they apply. What is offered is known before a rule that makes an exception
// for it, and whether a character is open before the rules that do not apply inside one.
inline constexpr NewRule kRules[] = {
    NewForcedTokens, NewUnknownPenalty, NewRepetitionPenalty, NewConstraintRule, NewSpelledStart,
    NewGrammarRule,  NewNgramRepeats,   NewMinLength,         NewWishedLength,
};

}  // namespace linnet::model
