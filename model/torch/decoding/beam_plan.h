#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "model/ops/search/beam_search.h"
#include "model/torch/decoding/running_sequence.h"

namespace linnet::model {

// The host's side of a search on the device (ops/search/beam_search.h): it writes the plan of a
// step and reads its record.

// Writes the next step of the sequences to the first `size` rows of `plan`, int32 [rows,
// ops::kPlanWords + blocks] on the host. Their slots are distinct, and at most `size` together.
void FillPlan(std::span<RunningSequence* const> sequences, int size, at::Tensor& plan);

// Applies a sequence's part of a record to its search. Returns InternalError if the search failed.
absl::Status FollowRecord(std::span<const ops::BeamRecord> record, Search& search);

// The automaton in the form of ops/search/beam_search.h; empty for null.
std::vector<at::Tensor> GrammarTensors(const TokenGrammar* grammar, at::Device device);

}  // namespace linnet::model
