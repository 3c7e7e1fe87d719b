#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
#include "server/models/registry.h"
#include "server/models/served_model.h"

namespace linnet::server {

// What a reload came to.
struct ReloadReport {
  // Of a bundle.
  struct Outcome {
    enum class What {
      kLoaded,     // it was new or had changed, and is served now
      kUnchanged,  // it was served already, and its files are whole
      kFailed,     // it was new or had changed, and could not be loaded, or its files are damaged
      kRemoved,    // it is not to be served any more
    };
    std::string folder;  // below the root: "en-de/2"
    What what = What::kUnchanged;
    absl::Status status = absl::OkStatus();  // why it failed
    // By which name requests get what is served of it, or in its place where it failed, and the
    // version of that; empty if nothing is. Of what was removed, what it was.
    std::string model = {};
    std::string model_version = {};
  };
  absl::Status status =
      absl::OkStatus();                // why the registry could not be read; nothing has changed
  std::vector<Outcome> outcomes = {};  // by folder
  absl::Duration duration = absl::ZeroDuration();

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

  // Loads every bundle of the registry at `root` (ReadRegistry). Those that cannot be loaded are
  // not served; if that goes for all of them, the error of the first one. `max_bytes` is what the
  // files of all models in memory may have, 0 for any number. With `bundle_keys`, a file of
  // BundleKeys that is read at every load, bundles must be signed.
  static absl::StatusOr<std::unique_ptr<Catalog>> Load(
      const std::filesystem::path& root, const EngineFactory& factory,
      const BatcherOptions& options, Metrics& metrics, StepObserver observer = nullptr,
      int64_t max_bytes = 0, const Supervision& supervision = {},
      const std::filesystem::path& bundle_keys = {});
  ~Catalog();  // when all calls have ended

  // Reads the registry again and loads what is new or has changed, which takes its time; meanwhile,
  // and where that fails, the former version is served. Then all of it changes at once. Calls that
  // are under way end with the model that they began with, which is in memory until then. A bundle
  // that answers more than half of its golden examples differently is refused. With a `name`, of a
  // model or of a folder in the root, all others stay as they are; NOT_FOUND if there is none.
  ReloadReport Reload(const std::string& name = "");
  // Lets go of replaced versions whose last call has ended; to be called now and then.
  void Sweep();
  // Scheduler::ShowLongCall for every model in memory.
  void ShowLongCalls(MonotonicTime now);

  // By key.
  std::vector<std::shared_ptr<ServedModel>> models() const;
  // Folders of bundles that are to be served, could not be loaded, and have no other version that
  // is served in their place.
  std::set<std::string> not_loaded() const;
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

  // The source languages of the models that are meant by default for a task that writes
  // `target_language` (empty: any), each once, in order. NOT_FOUND, listing what there is, if there
  // is none.
  absl::StatusOr<std::vector<std::string>> SourceLanguages(linnet::v1::Task task,
                                                           absl::string_view target_language) const;

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
  // Those that were replaced and still work among them.
  std::vector<std::shared_ptr<ServedModel>> InMemory() const;
  static absl::Status Unknown(absl::string_view name, const std::vector<Entry>& entries);
  static absl::Status NoPair(linnet::v1::Task task, const std::string& asked,
                             const std::vector<Entry>& entries);
  // Of the files of all models in memory, `next` among them.
  int64_t BytesBeside(const std::vector<Entry>& next) const;
  // `replaces`: something is served already that it may harm.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadOne(const RegisteredModel& wanted,
                                                       const std::vector<Entry>& next,
                                                       bool replaces);
  // It is served on as the registry has it now; once, and still by default if it stands in for one
  // that failed.
  static void Keep(const std::shared_ptr<ServedModel>& model, const RegisteredModel& wanted,
                   std::vector<Entry>& next);
  // The versions that had the names of one that could not be loaded, its labels and that it is
  // meant by default, keep them. Returns the one that is meant by default, else any; nullptr if
  // there was none.
  static std::shared_ptr<ServedModel> KeepNames(const RegisteredModel& wanted,
                                                const std::vector<Entry>& before,
                                                std::vector<Entry>& next);
  // Of ROOT/en-de/2 "en-de"; "" of the root itself.
  std::string FolderOf(const std::filesystem::path& path) const;
  // Those of the folders in which `name` is, or was; all for "".
  std::set<std::string> FoldersOf(const std::string& name,
                                  const std::vector<RegisteredModel>& registered,
                                  const std::vector<Entry>& before) const;

  const std::filesystem::path root_;
  const LoadOptions load_;
  const int64_t max_bytes_;
  Metrics& metrics_;
  Mutex reload_mu_;  // held for as long as a reload takes
  mutable Mutex mu_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);  // by key
  std::set<std::string> not_loaded_ ABSL_GUARDED_BY(mu_);
  // Versions that were replaced, until their last call has ended: not on its thread, which may be
  // the scheduler's own.
  std::vector<std::shared_ptr<ServedModel>> retired_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
