#pragma once

#include <memory>
#include <vector>

#include "server/schedule/sequence.h"

namespace linnet::server {

struct ServedModel;

struct GoldenResult {
  int examples = 0;
  int different = 0;  // another text than in the manifest, or an error
  // Those of them that rounding does not explain: an error, another text from an engine that
  // computes in float32, as the examples were made, or any if more than half differ.
  int unexplained = 0;
};

// Decodes the golden examples of the model's manifest in one batch and compares the texts. Blocks
// until all have ended; if the engine stalls, the Supervisor ends them.
GoldenResult AnswerGoldenExamples(ServedModel& served);

// Returns sequences, without sinks, that take at least that many rows, but no more than the engine
// has: the golden examples, or sources of unknown tokens if there are none. They expire after a
// second.
std::vector<std::unique_ptr<Sequence>> WarmUpSequences(const ServedModel& served, int rows);

// Decodes one sequence of WarmUpSequences: whether an engine decodes at all, for a bundle without
// golden examples. Returns the engine's error; that it takes longer than a second is none.
absl::Status DecodeOneText(ServedModel& served);

// Decodes one sequence alone and then as many as the engine has rows for, so that LatencyEstimator
// knows the cost of steps before the first call arrives. Their results are ignored. Takes at most
// two seconds plus a step; blocks as AnswerGoldenExamples does. An engine that is loaded on demand
// does the same when it has been loaded (LoadOnDemand::warm_up).
void WarmUp(ServedModel& served);

}  // namespace linnet::server
