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

}  // namespace linnet::server
