#pragma once

namespace linnet::server {

struct ServedModel;

struct GoldenResult {
  int examples = 0;
  int different = 0;  // another text than in the manifest, or an error
};

// Decodes the golden examples of the model's manifest in one batch and compares the texts. Blocks
// until all have ended; if the engine stalls, the Supervisor ends them.
GoldenResult AnswerGoldenExamples(ServedModel& served);

// Decodes one sequence alone and then as many as the engine has rows for, so that LatencyEstimator
// knows the cost of steps before the first call arrives. The sequences are the golden examples, or
// sources of unknown tokens if there are none; their results are ignored. Takes at most two seconds
// plus a step; blocks as AnswerGoldenExamples does.
void WarmUp(ServedModel& served);

}  // namespace linnet::server
