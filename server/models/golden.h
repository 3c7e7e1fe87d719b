#pragma once

#include "absl/time/time.h"

namespace linnet::server {

struct ServedModel;

struct GoldenResult {
  int examples = 0;
  int different = 0;  // other text than the manifest says, or an error
};

// Decodes the golden examples of the model's manifest, all at once, and compares. Waits for the
// answers: at start only; and nobody else watches the engine then (Scheduler::Watch): one that does
// not return for longer than `patience` has answered all of them differently.
GoldenResult AnswerGoldenExamples(ServedModel& served, absl::Duration patience);

}  // namespace linnet::server
