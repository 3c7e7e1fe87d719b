#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/bundle.h"
#include "model/runtime/tokenizer.h"
#include "server/metrics.h"
#include "server/scheduler.h"

namespace linnet::server {

// One bundle that is served: its tokenizers, and the scheduler that owns its engine.
struct ServedModel {
  model::Bundle bundle;
  std::unique_ptr<model::Tokenizer> source_tokenizer;
  std::unique_ptr<model::Tokenizer> target_tokenizer;
  ModelMetrics* metrics = nullptr;       // owned by Metrics
  std::unique_ptr<Scheduler> scheduler;  // last: its thread ends before the rest goes

  const std::string& name() const { return bundle.manifest.name(); }
  // As ListModels shows it.
  linnet::v1::Model Describe() const;
};

// The models of this process. Fixed once loaded, so that every method may be called from any
// thread.
class Catalog {
 public:
  using EngineFactory =
      std::function<absl::StatusOr<std::unique_ptr<model::Engine>>(const model::Bundle& bundle)>;

  // Loads every bundle below `root` and answers its golden examples once, which warms it up; an
  // answer that differs is logged, for rounding may differ between machines. The first error ends
  // it.
  static absl::StatusOr<std::unique_ptr<Catalog>> Load(const std::filesystem::path& root,
                                                       const EngineFactory& factory,
                                                       const BatcherOptions& options,
                                                       Metrics& metrics);

  const std::vector<std::unique_ptr<ServedModel>>& models() const { return models_; }

  // INVALID_ARGUMENT without a name, NOT_FOUND listing what there is.
  absl::StatusOr<ServedModel*> Named(absl::string_view name) const;
  // The model for a task. With a `name` the languages may be empty, and must fit if they are not;
  // without one it is the first by name whose languages are those asked for: the very tag, case
  // aside, else its primary subtag ("en-US" finds "en"). INVALID_ARGUMENT for a tag that is none or
  // a model of another task, NOT_FOUND listing what there is. `source_field` is what the request
  // calls its source language, for the error.
  absl::StatusOr<ServedModel*> Find(linnet::v1::Task task, absl::string_view name,
                                    absl::string_view source_language,
                                    absl::string_view target_language,
                                    absl::string_view source_field) const;

  // Scheduler::Drain for every model.
  void Drain(absl::Time deadline);

 private:
  std::vector<std::unique_ptr<ServedModel>> models_;  // by name
};

}  // namespace linnet::server
