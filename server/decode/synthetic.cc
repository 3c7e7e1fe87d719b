#include "server/decode/synthetic.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/schedule/batcher.h"

namespace linnet::server {
namespace {

// Adds up what was decoded.
struct Total {
  int64_t target_tokens = 0;  // of the best hypotheses, end token counted
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
    input.options.min_target_tokens = load.target_tokens - 1;  // and the end token
    input.options.max_target_tokens = load.target_tokens - 1;
  }
  return inputs;
}

absl::StatusOr<int64_t> DecodeAll(model::Engine& engine,
                                  const std::vector<model::SequenceInput>& inputs) {
  Total total;
  Batcher batcher(engine, {.max_encode_tokens = 1 << 30});
  for (const model::SequenceInput& input : inputs) {
    auto sequence = std::make_unique<Sequence>();
    sequence->input = input;
    sequence->sink = std::make_unique<TotalSink>(total);
    if (absl::Status status = batcher.Add(sequence, absl::Now()); !status.ok()) return status;
  }
  while (!batcher.idle()) batcher.Step([] { return absl::Now(); });
  if (!total.status.ok()) return total.status;
  return total.target_tokens;
}

}  // namespace

absl::StatusOr<std::string> MeasureSynthetic(model::Engine& engine, const SyntheticLoad& load) {
  const model::EngineInfo& info = engine.info();
  const std::vector<model::SequenceInput> inputs = RandomInputs(info, load);
  std::vector<double> seconds;
  int64_t tokens = 0;
  for (int i = 0; i <= load.repeat; ++i) {
    const absl::Time start = absl::Now();
    const absl::StatusOr<int64_t> decoded = DecodeAll(engine, inputs);
    if (!decoded.ok()) return decoded.status();
    tokens = *decoded;
    if (i > 0) seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  }
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  const double median =
      seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
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
  line["best_tokens_per_second"] = tokens / seconds.front();
  return line.dump();
}

}  // namespace linnet::server
