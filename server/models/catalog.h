#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/metrics.h"
#include "server/models/registry.h"
#include "server/models/served_model.h"
#include "server/mutex.h"

namespace linnet::server {

// What a reload came to.
struct ReloadReport {
  struct Outcome {
    std::string path;     // of a bundle that is to be served
    bool loaded = false;  // it was new or had changed: tried at least
    absl::Status status;  // why it is not served, or its former self still is
  };
  absl::Status status =
      absl::OkStatus();  // why the registry could not be read; nothing has changed
  std::vector<Outcome> outcomes = {};

  bool ok() const {
    bool all = status.ok();
    for (const Outcome& outcome : outcomes) all &= outcome.status.ok();
    return all;
  }
};

// The models of this process: those of a registry, which can be read again. Thread-safe.
class Catalog {
 public:
  using EngineFactory = server::EngineFactory;
  using StepObserver = server::StepObserver;

  // Loads every bundle of the registry at `root` (ReadRegistry); the first error ends it.
  // `max_bytes` is what the files of all models in memory may have, 0 for any number.
  static absl::StatusOr<std::unique_ptr<Catalog>> Load(const std::filesystem::path& root,
                                                       const EngineFactory& factory,
                                                       const BatcherOptions& options,
                                                       Metrics& metrics,
                                                       StepObserver observer = nullptr,
                                                       int64_t max_bytes = 0);
  ~Catalog();  // when all calls have ended

  // Reads the registry again and loads what is new or has changed, which takes its time; meanwhile,
  // and where that fails, the former version is served. Then all of it changes at once. Calls that
  // are under way end with the model that they began with, which is in memory until then. A bundle
  // that answers more than half of its golden examples differently is refused.
  ReloadReport Reload();
  // Lets go of replaced versions whose last call has ended; to be called now and then.
  void Sweep();

  // By key.
  std::vector<std::shared_ptr<ServedModel>> models() const;
  // Each under the name by which a request gets it.
  std::vector<linnet::v1::Model> List() const;

  // By "NAME", "NAME@VERSION" or "NAME@LABEL". INVALID_ARGUMENT without a name, NOT_FOUND listing
  // what there is.
  absl::StatusOr<std::shared_ptr<ServedModel>> Named(absl::string_view name) const;
  // The model for a task. With a `name` the languages may be empty, and must fit if they are not;
  // without one it is the first by name whose languages are those asked for: the very tag, case
  // aside, else its primary subtag ("en-US" finds "en"). INVALID_ARGUMENT for a tag that is none or
  // a model of another task, NOT_FOUND listing what there is. `source_field` is what the request
  // calls its source language, for the error.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(linnet::v1::Task task, absl::string_view name,
                                                    absl::string_view source_language,
                                                    absl::string_view target_language,
                                                    absl::string_view source_field) const;

  // Scheduler::Drain for every model.
  void Drain(absl::Time deadline);

 private:
  struct Entry {
    std::shared_ptr<ServedModel> model;
    RegisteredModel registered;  // as the registry had it last
    // By which a request gets it.
    std::string name() const { return registered.by_default ? model->name() : model->key(); }
  };

  Catalog(std::filesystem::path root, LoadOptions load, int64_t max_bytes, Metrics& metrics)
      : root_(std::move(root)), load_(std::move(load)), max_bytes_(max_bytes), metrics_(metrics) {}
  std::vector<Entry> entries() const;
  // Of the files of all models in memory, `next` among them.
  int64_t BytesBeside(const std::vector<Entry>& next) const;
  // `replaces`: something is served already that it may harm.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadOne(const RegisteredModel& wanted,
                                                       const std::vector<Entry>& next,
                                                       bool replaces);
  // The version that was meant by default stays so, in place of one that could not be loaded.
  static void KeepDefault(const RegisteredModel& wanted, const std::vector<Entry>& before,
                          std::vector<Entry>& next);

  const std::filesystem::path root_;
  const LoadOptions load_;
  const int64_t max_bytes_;
  Metrics& metrics_;
  Mutex reload_mu_;  // held for as long as a reload takes
  mutable Mutex mu_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);  // by key
  // Versions that were replaced, until their last call has ended: not on its thread, which may be
  // the scheduler's own.
  std::vector<std::shared_ptr<ServedModel>> retired_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
