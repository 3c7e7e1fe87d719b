#include "model/runtime/engine.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

// That every token of a source, prefix or target is one of its vocabulary.
absl::Status CheckTokens(const char* what, std::span<const TokenId> tokens, int vocabulary_size) {
  for (TokenId token : tokens) {
    if (token < 0 || token >= vocabulary_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " token ", token, " is outside the vocabulary of ", vocabulary_size, " tokens"));
    }
  }
  return absl::OkStatus();
}

// That there is neither an end nor padding in the middle of a target.
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

absl::Status CheckSource(std::span<const TokenId> source, const EngineInfo& info) {
  if (source.empty())
    return absl::InvalidArgumentError("the source is empty, it must end with the end token");
  if (std::ssize(source) > info.limits.max_source_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("the source has ", source.size(), " tokens, this model reads at most ",
                     info.limits.max_source_tokens, " (end token included)"));
  }
  if (source.back() != info.special.eos) {
    return absl::InvalidArgumentError(absl::StrCat("the source ends with token ", source.back(),
                                                   ", it must end with the end token ",
                                                   info.special.eos));
  }
  return CheckTokens("source", source, info.source_vocabulary_size);
}

absl::Status CheckPrefix(const SequenceInput& sequence, const EngineInfo& info) {
  if (std::ssize(sequence.prefix) > sequence.options.max_target_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("the prefix has ", sequence.prefix.size(),
                                                   " tokens, max_target_tokens is ",
                                                   sequence.options.max_target_tokens));
  }
  if (auto status = CheckTokens("prefix", sequence.prefix, info.vocabulary_size); !status.ok())
    return status;
  return CheckInside("prefix", sequence.prefix, info.special, "a prefix does not contain");
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
  if (auto status = CheckTokens("target", target, info.vocabulary_size); !status.ok())
    return status;
  const auto inside = std::span(target).first(target.size() - 1);
  if (auto status = CheckInside("target", inside, info.special, "stands inside no target");
      !status.ok())
    return status;
  if (!sequence.prefix.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a target to score and a prefix of ", sequence.prefix.size(),
                     " tokens are given: the target says its start already, leave the prefix out"));
  }
  if (sequence.options.sampling()) {
    return absl::InvalidArgumentError(
        "a target to score is given, and with it top_k, top_p or seed: nothing is drawn, leave "
        "them "
        "out");
  }
  return absl::OkStatus();
}

}  // namespace

int RowsOf(const SequenceInput& sequence) {
  return sequence.target.has_value() ? 1 : sequence.options.beam_size;
}

BeamSearch StartSearch(const SequenceInput& sequence, const SpecialTokens& special) {
  if (sequence.target.has_value())
    return BeamSearch::Scoring(sequence.options, special, *sequence.target);
  return BeamSearch(sequence.options, special, sequence.prefix);
}

absl::Status CheckSequence(const SequenceInput& sequence, const EngineInfo& info) {
  if (auto status = CheckOptions(sequence.options, info.limits); !status.ok()) return status;
  if (auto status = CheckSource(sequence.source, info); !status.ok()) return status;
  return sequence.target.has_value() ? CheckTarget(sequence, info) : CheckPrefix(sequence, info);
}

}  // namespace linnet::model
