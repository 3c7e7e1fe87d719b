#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/text/tokenizer.h"
#include "server/metrics/metrics.h"
#include "server/models/golden.h"
#include "server/models/registry.h"
#include "server/schedule/scheduler.h"

namespace linnet::server {

// One bundle that is served: its tokenizers, and the scheduler that owns its engine.
struct ServedModel {
  std::filesystem::path path;
  std::string version;  // of the registry: a folder's name, or empty
  int64_t bytes = 0;    // of its files
  model::Bundle bundle;
  std::unique_ptr<model::Tokenizer> source_tokenizer;
  std::unique_ptr<model::Tokenizer> target_tokenizer;
  GoldenResult golden;
  ModelMetrics* metrics = nullptr;       // owned by Metrics
  std::unique_ptr<Scheduler> scheduler;  // last: its thread ends before the rest goes

  const std::string& name() const { return bundle.manifest.name(); }
  // Its name, with the version if it has several: "en-de@2". On the page of metrics and in the log.
  std::string key() const { return version.empty() ? name() : name() + "@" + version; }
  // As GetModel shows it.
  linnet::v1::Model Describe() const;
};

using EngineFactory =
    std::function<absl::StatusOr<std::unique_ptr<model::Engine>>(const model::Bundle& bundle)>;
// Told of every turn of a model's scheduler, on its thread; `model` is its key.
using StepObserver =
    std::function<void(const std::string& model, const StepReport&, absl::Duration cycle)>;

struct LoadOptions {
  EngineFactory factory;
  BatcherOptions batcher;
  StepObserver observer = nullptr;
  Supervision supervision = {};
  std::filesystem::path bundle_keys = {};  // BundleKeys of those who sign; empty: nobody need
};

// Reads the bundle, and the keys for its signature where there are any, makes its engine, answers
// its golden examples once and makes some steps more (WarmUp), so that its speed is known; an
// answer that differs is logged, for rounding may differ between machines.
absl::StatusOr<std::shared_ptr<ServedModel>> LoadModel(const RegisteredModel& registered,
                                                       const LoadOptions& options,
                                                       Metrics& metrics);

}  // namespace linnet::server
