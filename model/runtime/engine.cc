#include "model/runtime/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/search/repeats.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr char kDeviceLost[] = "linnet/device-lost";

// Checks that every token of a source, prefix or target is in its vocabulary.
absl::Status CheckTokens(const char* what, std::span<const TokenId> tokens, int vocabulary_size) {
  for (TokenId token : tokens) {
    if (token < 0 || token >= vocabulary_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " token ", token, " is outside the vocabulary of ", vocabulary_size, " tokens"));
    }
  }
  return absl::OkStatus();
}

// Checks that tokens inside a target are neither the end token nor padding.
absl::Status CheckInside(const char* what, std::span<const TokenId> tokens,
                         const SpecialTokens& special, const char* so) {
  for (TokenId token : tokens) {
    if (token == special.eos || token == special.pad) {
      return absl::InvalidArgumentError(absl::StrCat(what, " token ", token, " is the ",
                                                     token == special.eos ? "end" : "padding",
                                                     " token, which ", so));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSource(const SequenceInput& sequence, const EngineInfo& info) {
  const std::span<const TokenId> source = sequence.source;
  const int64_t around = int64_t{sequence.before_text} + sequence.after_text;
  if (sequence.before_text < 0 || sequence.after_text < 0 || std::ssize(source) <= around)
    return absl::InvalidArgumentError("the source is empty, it must end with the end token");
  if (std::ssize(source) > info.limits.max_source_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("the source has ", source.size(), " tokens, this model reads at most ",
                     info.limits.max_source_tokens, " (end token included)"));
  }
  if (const TokenId last = TextOf(sequence).back(); last != info.special.eos) {
    return absl::InvalidArgumentError(absl::StrCat("the source ends with token ", last,
                                                   ", it must end with the end token ",
                                                   info.special.eos));
  }
  return CheckTokens("source", source, info.source_vocabulary_size);
}

absl::Status CheckSilent(std::span<const TokenId> silent, const EngineInfo& info) {
  if (std::ssize(silent) > info.max_language_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(silent.size(),
                                                   " language tokens start the target, this model "
                                                   "has at most ",
                                                   info.max_language_tokens));
  }
  RETURN_IF_ERROR(CheckTokens("language", silent, info.vocabulary_size));
  return CheckInside("language", silent, info.special, "cannot start a target");
}

absl::Status CheckStart(const SequenceInput& sequence, const EngineInfo& info) {
  if (sequence.start == nullptr) return absl::OkStatus();
  if (sequence.options.sampling()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a start to spell is given with ", NamesOfSampling(),
                     ": give its tokens as a prefix, or leave these out"));
  }
  for (const SpelledStart::Place& place : sequence.start->places)
    RETURN_IF_ERROR(CheckTokens("start", place.tokens, info.vocabulary_size));
  return absl::OkStatus();
}

absl::Status CheckPrefix(const SequenceInput& sequence, const EngineInfo& info) {
  if (std::ssize(sequence.prefix) > sequence.options.max_target_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("the prefix has ", sequence.prefix.size(),
                                                   " tokens, max_target_tokens is ",
                                                   sequence.options.max_target_tokens));
  }
  RETURN_IF_ERROR(CheckTokens("prefix", sequence.prefix, info.vocabulary_size));
  RETURN_IF_ERROR(CheckStart(sequence, info));
  return CheckInside("prefix", sequence.prefix, info.special, "a prefix does not contain");
}

absl::Status CheckConstraints(const SequenceInput& sequence, const EngineInfo& info) {
  if (sequence.constraints.empty()) return absl::OkStatus();
  if (std::ssize(sequence.constraints) > Constraints::kMaxPhrases) {
    return absl::InvalidArgumentError(absl::StrCat(sequence.constraints.size(),
                                                   " constraints are given, at most ",
                                                   Constraints::kMaxPhrases, " are taken"));
  }
  size_t tokens = 0;
  for (const std::vector<TokenId>& phrase : sequence.constraints) {
    if (phrase.empty()) return absl::InvalidArgumentError("a constraint is empty");
    RETURN_IF_ERROR(CheckTokens("constraint", phrase, info.vocabulary_size));
    RETURN_IF_ERROR(
        CheckInside("constraint", phrase, info.special, "a constraint does not contain"));
    if (std::count(phrase.begin(), phrase.end(), info.special.unk) > 0)
      return absl::InvalidArgumentError("a constraint contains the unknown token");
    tokens += phrase.size();
  }
  if (std::cmp_greater(tokens, sequence.options.max_target_tokens)) {
    return absl::InvalidArgumentError(absl::StrCat("the constraints have ", tokens,
                                                   " tokens together, max_target_tokens is ",
                                                   sequence.options.max_target_tokens));
  }
  if (sequence.length != nullptr) {
    return absl::InvalidArgumentError(
        "constraints and a wished length are given: a target that is full could not hold a phrase, "
        "leave one of them out");
  }
  if (sequence.target.has_value()) {
    return absl::InvalidArgumentError(
        "a target to score and constraints are given: nothing is searched, leave them out");
  }
  if (sequence.options.sampling()) {
    return absl::InvalidArgumentError(absl::StrCat("constraints are given with ", NamesOfSampling(),
                                                   ": sampling cannot enforce constraints, leave "
                                                   "one of them out"));
  }
  if (sequence.options.beam_size < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("beam_size is ", sequence.options.beam_size,
                     ", with constraints it must be at least 2: greedy search would emit them "
                     "immediately, in any context"));
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const SequenceInput& sequence, const EngineInfo& info) {
  const std::vector<TokenId>& target = *sequence.target;
  if (target.empty())
    return absl::InvalidArgumentError("the target is empty, it must end with the end token");
  if (target.back() != info.special.eos) {
    return absl::InvalidArgumentError(absl::StrCat("the target ends with token ", target.back(),
                                                   ", it must end with the end token ",
                                                   info.special.eos));
  }
  if (std::ssize(target) - 1 > info.limits.max_target_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target has ", target.size() - 1, " tokens, this model writes at most ",
                     info.limits.max_target_tokens, " (end token not included)"));
  }
  RETURN_IF_ERROR(CheckTokens("target", target, info.vocabulary_size));
  const auto inside = std::span(target).first(target.size() - 1);
  RETURN_IF_ERROR(CheckInside("target", inside, info.special, "is not allowed inside a target"));
  if (!sequence.prefix.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a target to score and a prefix of ", sequence.prefix.size(),
        " tokens are given: the target already contains its start, leave the prefix out"));
  }
  if (sequence.start != nullptr) {
    return absl::InvalidArgumentError(
        "a target to score and a start to spell are given: leave the start out");
  }
  if (sequence.options.sampling()) {
    return absl::InvalidArgumentError(absl::StrCat("a target to score is given, and with it ",
                                                   NamesOfSampling(),
                                                   ": nothing is drawn, leave them out"));
  }
  return absl::OkStatus();
}

}  // namespace

void AddLanguageTokens(const linnet::v1::LanguageTokens& languages, SequenceInput& input) {
  const auto& before = languages.before_source_ids();
  const auto& after = languages.after_source_ids();
  input.source.insert(input.source.begin(), before.begin(), before.end());
  input.source.insert(input.source.end(), after.begin(), after.end());
  input.before_text = before.size();
  input.after_text = after.size();
  input.silent.assign(languages.forced_target_ids().begin(), languages.forced_target_ids().end());
}

std::span<const TokenId> TextOf(const SequenceInput& input) {
  return std::span(input.source)
      .subspan(input.before_text, input.source.size() - input.before_text - input.after_text);
}

int RowsOf(const SequenceInput& sequence) {
  return sequence.target.has_value() ? 1 : sequence.options.beam_size;
}

std::unique_ptr<Search> StartSearch(const SequenceInput& sequence, const EngineInfo& info) {
  SearchSpec spec = {.options = sequence.options,
                     .special = info.special,
                     .prefix = sequence.prefix,
                     .constraints = Constraints(sequence.constraints, sequence.continuations),
                     .grammar = info.grammar,
                     .silent = sequence.silent,
                     .length = sequence.length,
                     .target = sequence.target,
                     .start = sequence.start};
  if (int& repeats = spec.options.max_ngram_repeats; repeats > 0)
    repeats = std::max(repeats, ConsecutiveRepeats(TextOf(sequence)));
  return NewSearch(spec);
}

absl::Status CheckSequence(const SequenceInput& sequence, const EngineInfo& info) {
  RETURN_IF_ERROR(CheckOptions(sequence.options, info.limits));
  RETURN_IF_ERROR(CheckSource(sequence, info));
  RETURN_IF_ERROR(CheckSilent(sequence.silent, info));
  RETURN_IF_ERROR(CheckConstraints(sequence, info));
  return sequence.target.has_value() ? CheckTarget(sequence, info) : CheckPrefix(sequence, info);
}

absl::Status DeviceLost(absl::Status status) {
  status.SetPayload(kDeviceLost, absl::Cord());
  return status;
}

bool IsDeviceLost(const absl::Status& status) { return status.GetPayload(kDeviceLost).has_value(); }

}  // namespace linnet::model
