#include "server/decode/synthetic.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/schedule/batcher.h"

namespace linnet::server {
namespace {

// Sums over all sequences.
struct Total {
  int64_t target_tokens = 0;  // of the best hypotheses, including end tokens
  absl::Status status;
};

class TotalSink final : public Sink {
 public:
  explicit TotalSink(Total& total) : total_(total) {}
  void Done(absl::StatusOr<SequenceResult> result) override {
    if (!result.ok()) {
      total_.status = result.status();
    } else {
      total_.target_tokens += std::ssize(result->hypotheses.front().tokens);
    }
  }

 private:
  Total& total_;
};

std::vector<model::SequenceInput> RandomInputs(const model::EngineInfo& info,
                                               const SyntheticLoad& load) {
  std::mt19937_64 random(load.seed);
  const int first = info.special.unk + 1;
  std::vector<model::SequenceInput> inputs(load.batch);
  for (model::SequenceInput& input : inputs) {
    for (int i = 0; i + 1 < load.source_tokens; ++i) {
      input.source.push_back(first +
                             static_cast<int>(random() % (info.source_vocabulary_size - first)));
    }
    input.source.push_back(info.special.eos);
    input.options = load.options;
    input.options.min_target_tokens = load.target_tokens - 1;  // plus the end token
    input.options.max_target_tokens = load.target_tokens - 1;
  }
  return inputs;
}

struct Run {
  int64_t target_tokens = 0;
  double seconds = 0;
  std::vector<double> steps;  // seconds per step; the first includes the encoder
};

absl::StatusOr<Run> DecodeAll(model::Engine& engine,
                              const std::vector<model::SequenceInput>& inputs) {
  Run run;
  const absl::Time start = absl::Now();
  Total total;
  Batcher batcher(engine, {.max_encode_tokens = 1 << 30});
  for (const model::SequenceInput& input : inputs) {
    auto sequence = std::make_unique<Sequence>();
    sequence->input = input;
    sequence->sink = std::make_unique<TotalSink>(total);
    RETURN_IF_ERROR(batcher.Add(sequence, absl::Now()));
  }
  while (!batcher.idle()) {
    const absl::Time step = absl::Now();
    batcher.Step([] { return absl::Now(); });
    run.steps.push_back(absl::ToDoubleSeconds(absl::Now() - step));
  }
  RETURN_IF_ERROR(total.status);
  run.target_tokens = total.target_tokens;
  run.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return run;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Median over the runs of the seconds of each step, rounded to 0.1 microseconds.
std::vector<double> MedianSteps(const std::vector<Run>& runs) {
  std::vector<double> medians;
  for (size_t step = 0; step < runs.front().steps.size(); ++step) {
    std::vector<double> seconds;
    for (const Run& run : runs) seconds.push_back(run.steps.at(step));
    medians.push_back(std::round(1e7 * Median(seconds)) / 1e7);
  }
  return medians;
}

}  // namespace

absl::StatusOr<std::string> MeasureSynthetic(model::Engine& engine, const SyntheticLoad& load) {
  const model::EngineInfo& info = engine.info();
  if (info.special.unk + 1 >= info.source_vocabulary_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("random sources have the ids above unk_id, which is ", info.special.unk,
                     ", and the source vocabulary has ", info.source_vocabulary_size,
                     " tokens: give lines with source_ids instead of --synthetic"));
  }
  const std::vector<model::SequenceInput> inputs = RandomInputs(info, load);
  std::vector<Run> runs;
  for (int i = 0; i <= load.repeat; ++i) {
    ASSIGN_OR_RETURN(Run run, DecodeAll(engine, inputs));
    if (i > 0) runs.push_back(std::move(run));
  }
  std::vector<double> seconds;
  for (const Run& run : runs) seconds.push_back(run.seconds);
  const double median = Median(seconds);
  const int64_t tokens = runs.front().target_tokens;
  nlohmann::ordered_json line;
  line["engine"] = "torch";
  line["compute"] = info.compute_type;
  line["device"] = info.device;
  line["search"] = info.search;
  line["threads"] = info.threads;
  line["batch"] = load.batch;
  line["beam"] = load.options.beam_size;
  line["source_tokens"] = load.source_tokens;
  line["target_tokens"] = load.target_tokens;
  line["seconds"] = median;
  line["tokens_per_second"] = tokens / median;
  line["best_tokens_per_second"] = tokens / *std::min_element(seconds.begin(), seconds.end());
  if (load.step_seconds) line["step_seconds"] = MedianSteps(runs);
  return line.dump();
}

}  // namespace linnet::server
