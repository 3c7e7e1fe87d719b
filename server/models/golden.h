#pragma once

namespace linnet::server {

struct ServedModel;

struct GoldenResult {
  int examples = 0;
  int different = 0;  // other text than the manifest says, or an error
};

// Decodes the golden examples of the model's manifest, all at once, and compares. Waits for the
// answers: at start only.
GoldenResult AnswerGoldenExamples(ServedModel& served);

}  // namespace linnet::server
