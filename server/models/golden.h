#pragma once

namespace linnet::server {

struct ServedModel;

struct GoldenResult {
  int examples = 0;
  int different = 0;  // other text than the manifest says, or an error
};

// Decodes the golden examples of the model's manifest, all at once, and compares. Waits for the
// answers; of an engine that does not return they come from the Supervisor.
GoldenResult AnswerGoldenExamples(ServedModel& served);

// Decodes one sequence alone and then as many as the engine has rows for, so that what steps cost
// is known before the first call arrives (LatencyEstimator): real ones, the golden examples, or if
// there are none sources of unknown tokens. Takes two seconds at most, and a step; waits as
// AnswerGoldenExamples does. What becomes of the sequences does not matter.
void WarmUp(ServedModel& served);

}  // namespace linnet::server
