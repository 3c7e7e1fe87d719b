#include "model/torch/decoding/beam_plan.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "model/runtime/search/candidates.h"

namespace linnet::model {

void FillPlan(std::span<RunningSequence* const> sequences, int size, at::Tensor& plan) {
  const int64_t words = plan.size(1);
  int32_t* const rows = plan.mutable_data_ptr<int32_t>();
  const auto at = [&](int row) -> ops::BeamPlan& {
    return *reinterpret_cast<ops::BeamPlan*>(rows + row * words);
  };
  for (int row = 0; row < size; ++row) {
    at(row).search = -1;
    at(row).beam = 0;
  }
  int row = 0;
  for (int number = 0; number < std::ssize(sequences); ++number) {
    const RunningSequence& sequence = *sequences[number];
    const auto slots = sequence.slots.numbers(), blocks = sequence.blocks.numbers();
    const int position = sequence.launched;
    ops::BeamPlan& own = at(number);
    own.beam = static_cast<int32_t>(slots.size());
    own.first_row = row;
    own.position = position;
    const StepRules rules = sequence.search->Describe(position);
    own.forced = rules.forced;
    own.silent = rules.silent ? 1 : 0;
    own.may_end = rules.may_end ? 1 : 0;
    own.ngram = std::min(rules.no_repeat_ngram_size, ops::kMaxHistory);
    own.repeats = std::min(rules.max_ngram_repeats, ops::kMaxHistory);
    own.unknown_penalty = rules.unknown_penalty;
    own.temperature = sequence.options.temperature;
    own.source_tokens = sequence.source_tokens;
    own.left = rules.left;
    std::copy(slots.begin(), slots.end(), own.slots);
    // Entries after the source's blocks are not read.
    std::copy(blocks.begin(), blocks.end(), rows + number * words + ops::kPlanWords);
    for (int i = 0; i < own.beam; ++i) at(row++).search = number;
  }
}

absl::Status FollowRecord(std::span<const ops::BeamRecord> record, Search& search) {
  const ops::BeamEntry& news = record.front().ended;
  if (news.token == ops::kNoProbabilities) {
    return absl::InternalError(absl::StrCat("the model gave no probabilities at target token ",
                                            search.steps(), ": the normalizer of hypothesis ",
                                            news.parent, " is ", news.log_probability));
  }
  if (news.token == ops::kNothingPossible) {
    return absl::InternalError(
        absl::StrCat("no token is possible at target token ", search.steps(),
                     ": each is forbidden or has no finite log-probability"));
  }
  std::vector<Candidate> live, ended;
  const auto add = [](const ops::BeamEntry& entry, std::vector<Candidate>& entries) {
    if (entry.token < 0) return;
    entries.push_back({.sum = entry.sum,
                       .log_probability = entry.log_probability,
                       .parent = entry.parent,
                       .token = entry.token});
  };
  for (const ops::BeamRecord& row : record) {
    add(row.next, live);
    add(row.ended, ended);
  }
  search.Follow(live, ended);
  return absl::OkStatus();
}

std::vector<at::Tensor> GrammarTensors(const TokenGrammar* grammar, at::Device device) {
  if (grammar == nullptr) return {};
  const auto classes = grammar->classes();
  at::Tensor bytes = at::empty({std::ssize(classes)}, at::kByte);
  std::copy(classes.begin(), classes.end(), bytes.mutable_data_ptr<uint8_t>());
  const auto ints = [](const std::vector<int32_t>& values) {
    at::Tensor tensor = at::empty({std::ssize(values)}, at::kInt);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int32_t>());
    return tensor;
  };
  return {bytes.to(device),
          ints(TokenGrammar::Transitions()).view({TokenGrammar::kStates, -1}).to(device),
          ints(TokenGrammar::Tails()).to(device)};
}

}  // namespace linnet::model
