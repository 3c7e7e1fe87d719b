#include "server/models/golden.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "proto/status_macros.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/models/catalog.h"

namespace linnet::server {
namespace {

// Max duration of one round of the warm-up.
constexpr absl::Duration kWarmUpTime = absl::Seconds(1);
constexpr int kUnknownTokens = 16;
constexpr absl::string_view kOtherText = "other text";
// Types in which a few answers are worded differently than in float32.
constexpr absl::string_view kRounding[] = {"bfloat16", "float16", "int8"};
// Rounding explains other answers to at most one in so many examples. int8 changes 16 % of the
// answers of a small imported student, and of a model that linnet-export wrote none.
constexpr int kMaxRounded = 2;

// Counts open answers; the loading thread waits until there are none.
struct Answers {
  Mutex mu;
  CondVar changed;
  int open ABSL_GUARDED_BY(mu) = 0;
  // Error or kOtherText, by the index of the example.
  std::map<int, std::string> different ABSL_GUARDED_BY(mu);
  absl::Status first_error ABSL_GUARDED_BY(mu);  // of the warm-up
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
    if (!same) {
      answers_.different[index_] =
          result.ok() ? std::string(kOtherText) : result.status().ToString();
    }
    if (--answers_.open == 0) answers_.changed.NotifyAll();
  }

 private:
  const ServedModel& served_;
  const int index_;
  Answers& answers_;
};

// The sink of the warm-up, which ignores what was decoded.
class CountSink : public Sink {
 public:
  explicit CountSink(Answers& answers) : answers_(answers) {}

  void Done(absl::StatusOr<SequenceResult> result) override {
    MutexLock lock(answers_.mu);
    answers_.first_error.Update(result.status());
    if (--answers_.open == 0) answers_.changed.NotifyAll();
  }

 private:
  Answers& answers_;
};

absl::Status Submit(ServedModel& served, std::vector<std::unique_ptr<Sequence>> sequences,
                    Answers& answers) {
  const int count = static_cast<int>(sequences.size());
  {
    MutexLock lock(answers.mu);
    answers.open += count;
  }
  absl::Status status = served.scheduler->Submit(sequences);
  if (!status.ok()) {
    MutexLock lock(answers.mu);
    answers.open -= count;
  }
  return status;
}

void Wait(Answers& answers) {
  MutexLock lock(answers.mu);
  while (answers.open > 0) answers.changed.Wait(answers.mu);
}

// The bundle's defaults, with a beam for which the steps of the engine have room.
model::SearchOptions DefaultOptions(const ServedModel& served, size_t tokens) {
  model::SearchOptions options = served.bundle.default_options(static_cast<int>(tokens));
  options.beam_size =
      std::min(options.beam_size, served.scheduler->engine_info().limits.max_beam_size);
  return options;
}

absl::StatusOr<std::unique_ptr<Sequence>> GoldenSequence(const ServedModel& served, int index) {
  const linnet::v1::GoldenExample& example = served.bundle.manifest.golden_examples(index);
  ASSIGN_OR_RETURN(auto tokens, served.source_tokenizer->Encode(example.source_text()));
  tokens.push_back(served.bundle.special_tokens().eos);
  auto sequence = std::make_unique<Sequence>();
  sequence->input.options = DefaultOptions(served, tokens.size());
  sequence->input.source = std::move(tokens);
  // The manifest's check has found its pair and style.
  const bool own = example.source_language_code().empty();
  const linnet::v1::LanguageTokens& pair =
      own ? served.languages.own()
          : *served.languages.Exact(example.source_language_code(), example.target_language_code());
  model::AddLanguageTokens(*served.languages.WithStyle(pair, example.style()), sequence->input);
  return sequence;
}

// Decodes to its limit on target tokens, so that the estimates learned from it are too high rather
// than too low.
absl::StatusOr<std::unique_ptr<Sequence>> UnknownSequence(const ServedModel& served) {
  const int tokens =
      std::min(kUnknownTokens, served.scheduler->engine_info().limits.max_source_tokens -
                                   served.languages.max_source_tokens());
  auto sequence = std::make_unique<Sequence>();
  sequence->input.source.assign(tokens, served.bundle.special_tokens().unk);
  sequence->input.source.back() = served.bundle.special_tokens().eos;
  sequence->input.options = DefaultOptions(served, tokens);
  sequence->input.options.min_target_tokens = sequence->input.options.max_target_tokens;
  model::AddLanguageTokens(served.languages.own(), sequence->input);
  return sequence;
}

// Decodes WarmUpSequences and returns the first error.
absl::Status DecodeWarmUp(ServedModel& served, int rows) {
  Answers answers;
  std::vector<std::unique_ptr<Sequence>> sequences = WarmUpSequences(served, rows);
  for (const auto& sequence : sequences) sequence->sink = std::make_unique<CountSink>(answers);
  RETURN_IF_ERROR(Submit(served, std::move(sequences), answers));
  Wait(answers);
  MutexLock lock(answers.mu);
  return answers.first_error;
}

}  // namespace

std::vector<std::unique_ptr<Sequence>> WarmUpSequences(const ServedModel& served, int rows) {
  const int examples = served.bundle.manifest.golden_examples_size();
  const int limit = served.scheduler->engine_info().rows;
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (int i = 0, taken = 0; taken < rows; ++i) {
    auto sequence = examples > 0 ? GoldenSequence(served, i % examples) : UnknownSequence(served);
    if (!sequence.ok()) break;
    taken += model::RowsOf((*sequence)->input);
    if (taken > limit) break;
    (*sequence)->deadline = absl::Now() + kWarmUpTime;
    sequences.push_back(*std::move(sequence));
  }
  return sequences;
}

absl::Status DecodeOneText(ServedModel& served) {
  absl::Status status = DecodeWarmUp(served, 1);
  return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
}

void WarmUp(ServedModel& served) {
  for (const int rows : {1, served.scheduler->engine_info().rows}) {
    // The results do not matter, but that the engine is up.
    const absl::Status status = DecodeWarmUp(served, rows);
    if (!status.ok() && !absl::IsDeadlineExceeded(status)) return;
  }
}

GoldenResult AnswerGoldenExamples(ServedModel& served) {
  GoldenResult golden{.examples = served.bundle.manifest.golden_examples_size()};
  Answers answers;
  for (int i = 0; i < golden.examples; ++i) {
    auto sequence = GoldenSequence(served, i);
    absl::Status status = sequence.status();
    if (status.ok()) {
      (*sequence)->sink = std::make_unique<CompareSink>(served, i, answers);
      std::vector<std::unique_ptr<Sequence>> one;
      one.push_back(*std::move(sequence));
      status = Submit(served, std::move(one), answers);
      if (status.ok()) continue;
    }
    MutexLock lock(answers.mu);
    answers.different[i] = status.ToString();
  }
  Wait(answers);
  MutexLock lock(answers.mu);
  const bool rounds =
      std::ranges::count(kRounding, served.scheduler->engine_info().compute_type) != 0 &&
      kMaxRounded * std::ssize(answers.different) <= golden.examples;
  for (const auto& [index, status] : answers.different) {
    const bool explained = rounds && status == kOtherText;
    if (!explained) ++golden.unexplained;
    Log(explained ? LogLevel::kInfo : LogLevel::kWarning, "golden_example_differs",
        {{"model", served.name()}, {"index", index}, {"status", status}});
  }
  golden.different = static_cast<int>(answers.different.size());
  return golden;
}

}  // namespace linnet::server
