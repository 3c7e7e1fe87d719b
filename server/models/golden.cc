#include "server/models/golden.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
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
  int different ABSL_GUARDED_BY(mu) = 0;
};

class CompareSink : public Sink {
 public:
  CompareSink(const ServedModel& served, int index, Answers& answers)
      : served_(served), index_(index), answers_(answers) {}

  void Done(absl::StatusOr<SequenceResult> result) override {
    const auto& expected = served_.bundle.manifest.golden_examples(index_).target_text();
    const bool same = result.ok() && served_.target_tokenizer->Decode(
                                         result->hypotheses.front().tokens) == expected;
    if (!same) {
      Log(LogLevel::kWarning, "golden_example_differs",
          {{"model", served_.name()},
           {"index", index_},
           {"status", result.ok() ? "other text" : result.status().ToString()}});
    }
    MutexLock lock(answers_.mu);
    answers_.different += same ? 0 : 1;
    if (--answers_.open == 0) answers_.changed.NotifyAll();
  }

 private:
  const ServedModel& served_;
  const int index_;
  Answers& answers_;
};

}  // namespace

GoldenResult AnswerGoldenExamples(ServedModel& served, absl::Duration patience) {
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
    Log(LogLevel::kWarning, "golden_example_differs",
        {{"model", served.name()}, {"index", i}, {"status", status.ToString()}});
    ++golden.different;
  }
  while (true) {
    const absl::Time next = absl::Now() + std::min(patience / 2, absl::Seconds(1));
    {
      MutexLock lock(answers.mu);
      while (answers.open > 0 && answers.changed.WaitUntil(answers.mu, next)) {
      }
      if (answers.open == 0) {
        golden.different += answers.different;
        return golden;
      }
    }
    served.scheduler->Watch(absl::Now(), patience);
  }
}

}  // namespace linnet::server
