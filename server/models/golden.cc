#include "server/models/golden.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/log.h"
#include "server/models/catalog.h"
#include "server/mutex.h"

namespace linnet::server {
namespace {

// Counts answers down; the loading thread waits for the last.
struct Answers {
  Mutex mu;
  CondVar changed;
  int open ABSL_GUARDED_BY(mu) = 0;
  // What came in place of what was expected, by the number of the example.
  std::map<int, std::string> different ABSL_GUARDED_BY(mu);
};

class CompareSink : public Sink {
 public:
  CompareSink(const ServedModel& served, int index, Answers& answers)
      : served_(served), index_(index), answers_(answers) {}

  void Done(absl::StatusOr<SequenceResult> result) override {
    const auto& expected = served_.bundle.manifest.golden_examples(index_).target_text();
    const bool same = result.ok() && served_.target_tokenizer->Decode(
                                         result->hypotheses.front().tokens) == expected;
    MutexLock lock(answers_.mu);
    if (!same) answers_.different[index_] = result.ok() ? "other text" : result.status().ToString();
    if (--answers_.open == 0) answers_.changed.NotifyAll();
  }

 private:
  const ServedModel& served_;
  const int index_;
  Answers& answers_;
};

}  // namespace

GoldenResult AnswerGoldenExamples(ServedModel& served) {
  GoldenResult golden{.examples = served.bundle.manifest.golden_examples_size()};
  Answers answers;
  for (int i = 0; i < golden.examples; ++i) {
    auto tokens =
        served.source_tokenizer->Encode(served.bundle.manifest.golden_examples(i).source_text());
    absl::Status status = tokens.status();
    if (tokens.ok()) {
      tokens->push_back(served.bundle.special_tokens().eos);
      auto sequence = std::make_unique<Sequence>();
      sequence->input.options = served.bundle.default_options(static_cast<int>(tokens->size()));
      sequence->input.source = *std::move(tokens);
      sequence->sink = std::make_unique<CompareSink>(served, i, answers);
      {
        MutexLock lock(answers.mu);
        ++answers.open;
      }
      std::vector<std::unique_ptr<Sequence>> one;
      one.push_back(std::move(sequence));
      status = served.scheduler->Submit(one);
      if (status.ok()) continue;
      MutexLock lock(answers.mu);
      --answers.open;
    }
    MutexLock lock(answers.mu);
    answers.different[i] = status.ToString();
  }
  std::map<int, std::string> different;
  {
    MutexLock lock(answers.mu);
    while (answers.open > 0) answers.changed.Wait(answers.mu);
    different = answers.different;
  }
  for (const auto& [index, status] : different) {
    Log(LogLevel::kWarning, "golden_example_differs",
        {{"model", served.name()}, {"index", index}, {"status", status}});
  }
  golden.different = static_cast<int>(different.size());
  return golden;
}

}  // namespace linnet::server
