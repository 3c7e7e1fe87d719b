#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "server/cache/answer_cache.h"
#include "server/metrics/metrics.h"
#include "server/models/golden.h"
#include "server/models/registry.h"
#include "server/schedule/scheduler.h"

namespace linnet::server {

// A served bundle: its tokenizers, and the scheduler that owns its engine. Shared by the catalog
// and the calls that use it.
struct ServedModel {
  std::filesystem::path path;
  std::string version;  // RegisteredModel::version
  int64_t bytes = 0;    // total size of its files
  model::Bundle bundle;
  model::LanguagePairs languages;  // of the bundle
  std::unique_ptr<model::Tokenizer> source_tokenizer;
  std::unique_ptr<model::Tokenizer> target_tokenizer;
  std::unique_ptr<ModelCache> cache;  // null if the server keeps no answers
  GoldenResult golden;
  absl::Duration load_time = absl::ZeroDuration();
  ModelMetrics* metrics = nullptr;       // owned by Metrics
  std::unique_ptr<Scheduler> scheduler;  // last: its thread uses the members above

  const std::string& name() const { return bundle.manifest.name(); }
  // Name, with the version if it has one: "en-de@2". Used as metric label and in the log.
  std::string key() const { return version.empty() ? name() : name() + "@" + version; }
  // Shows it as the version that is served.
  void ShowIn(Metrics& page) const;
  // The answer of GetModel.
  linnet::v1::Model Describe() const;
};

using EngineFactory =
    std::function<absl::StatusOr<std::unique_ptr<model::Engine>>(const model::Bundle& bundle)>;
using EngineInfoFactory =
    std::function<absl::StatusOr<model::EngineInfo>(const model::Bundle& bundle)>;
// Called after every step of a model's scheduler, on its thread; `model` is the model's key.
using StepObserver =
    std::function<void(const std::string& model, const StepReport&, absl::Duration cycle)>;

// Engines are loaded on demand.
struct OnDemandOptions {
  // Outlives the models. Null: engines are loaded with their models.
  EngineMemory* memory = nullptr;
  // The info of an engine that is not loaded yet.
  EngineInfoFactory info = nullptr;
  // Names of models whose engines are loaded at once, and stay.
  std::set<std::string> pinned = {};
};

struct LoadOptions {
  EngineFactory factory;
  BatcherOptions batcher;
  StepObserver observer = nullptr;
  Supervision supervision = {};
  std::filesystem::path bundle_keys = {};  // file of BundleKeys; empty: signatures are not required
  // It is shared by all models and outlives them. With it, an engine without batch invariance is
  // refused. Null: no answers are kept.
  AnswerCache* cache = nullptr;
  OnDemandOptions on_demand = {};
};

// Loads a bundle except for its engine, and checks its signature if there are keys.
absl::StatusOr<std::shared_ptr<ServedModel>> ReadModel(const RegisteredModel& registered,
                                                       const LoadOptions& options);

// Builds the engine of a model that ReadModel returned, decodes its golden examples, and runs
// WarmUp, so that its speed is known. More golden examples with another answer than
// `max_different`, as a share of them, are an error; fewer are logged, because rounding differs
// between machines. Without examples, and with a `max_different` below 1, it is an error if one
// text cannot be decoded. Only a model without an error is seen by `metrics` and the observer. An
// engine that is loaded on demand is built, and warmed up, when its first call comes; its golden
// examples are not decoded.
absl::Status StartModel(ServedModel& served, const LoadOptions& options, double max_different,
                        Metrics& metrics);

}  // namespace linnet::server
