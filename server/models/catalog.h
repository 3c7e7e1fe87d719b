#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
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
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
#include "server/models/registry.h"
#include "server/models/served_model.h"

namespace linnet::server {

// The result of a reload.
struct ReloadReport {
  // The result for one bundle.
  struct Outcome {
    enum class What {
      kLoaded,     // new or changed, and now served
      kUnchanged,  // already served, and its files are intact
      kFailed,     // new or changed and could not be loaded, or its files are damaged
      kRemoved,    // no longer served
    };
    std::string folder;  // relative to the root: "en-de/2"
    What what = What::kUnchanged;
    absl::Status status = absl::OkStatus();  // the error, if kFailed
    // The request name and version of the served model: of this bundle, or of the one that remains
    // served in its place if it failed; empty if there is none. If removed, its former ones.
    std::string model = {};
    std::string model_version = {};
  };
  absl::Status status =
      absl::OkStatus();                // not OK: the registry is unreadable, nothing has changed
  std::vector<Outcome> outcomes = {};  // by folder
  absl::Duration duration = absl::ZeroDuration();

  bool ok() const {
    bool all = status.ok();
    for (const Outcome& outcome : outcomes) all &= outcome.status.ok();
    return all;
  }
};

// The served models of this process, loaded from a registry folder that can be reloaded.
// Thread-safe.
class Catalog {
 public:
  using EngineFactory = server::EngineFactory;
  using StepObserver = server::StepObserver;

  // Loads every bundle of the registry at `root` (ReadRegistry). A bundle that cannot be loaded is
  // not served; if none can be loaded, returns MissingError(). `max_bytes` limits the total
  // file size of all models in memory; 0 = no limit. If `bundle_keys` names a file of BundleKeys,
  // which is read at every load, bundles must be signed. With a `cache`, which outlives the
  // catalog, the models keep their answers there. With `on_demand` the engines of models that are
  // not pinned are loaded when they are first used.
  static absl::StatusOr<std::unique_ptr<Catalog>> Load(
      const std::filesystem::path& root, const EngineFactory& factory,
      const BatcherOptions& options, Metrics& metrics, StepObserver observer = nullptr,
      int64_t max_bytes = 0, const Supervision& supervision = {},
      const std::filesystem::path& bundle_keys = {}, AnswerCache* cache = nullptr,
      const OnDemandOptions& on_demand = {});
  ~Catalog();  // blocks until all calls have released their models

  // Reads the registry again and loads new and changed bundles. Until they are loaded, and if one
  // fails, the previous version remains served; then all models change at once. Calls in flight
  // finish with the model that they started with, which stays in memory until then. The cached
  // answers of all models that are reloaded, changed or not, are erased. A bundle that answers more
  // than half of its golden examples differently is refused. With a `name` (of a model, or of a
  // folder in the root) only that one is reloaded; NOT_FOUND if there is none.
  ReloadReport Reload(const std::string& name = "");
  // Unloads replaced versions whose last call has ended. One whose engine is being built, or is in
  // a call, is left for a later Sweep. Call it periodically.
  void Sweep();
  // Scheduler::Maintain for every model in memory.
  void MaintainSchedulers(MonotonicTime now);

  // All served models, sorted by key.
  std::vector<std::shared_ptr<ServedModel>> models() const;
  // The bundles that could not be loaded and in whose place no other version is served: their
  // folders in the root, with their errors.
  std::map<std::string, absl::Status> not_loaded() const;
  // Number of reloads so far, the first load included: between two of them, models() and
  // not_loaded() are the same.
  int64_t reloads() const;
  // An error that names the bundles of not_loaded(), each with its cause; OK if there are none. Its
  // code is that of the first cause.
  absl::Status MissingError() const;
  // All served models, each with the name by which a request selects it.
  std::vector<linnet::v1::Model> List() const;
  // The one that Named finds, as in the list.
  absl::StatusOr<linnet::v1::Model> Describe(absl::string_view name) const;

  // Finds a model by "NAME", "NAME@VERSION" or "NAME@LABEL". INVALID_ARGUMENT without a name,
  // NOT_FOUND with the list of models.
  absl::StatusOr<std::shared_ptr<ServedModel>> Named(absl::string_view name) const;
  // A model and one of its language pairs.
  struct Found {
    std::shared_ptr<ServedModel> model;
    const linnet::v1::LanguageTokens* languages = nullptr;  // of model->languages
  };
  // Finds the model and its pair for a task. With a `name`, languages are optional if they leave
  // only one pair, but must match if they are set. Without one, returns the model whose pair is
  // nearest (model::LanguageDistance: "en-US" finds "en", "zh-TW" finds "zh-Hant" before "zh"), and
  // of several the first by name. INVALID_ARGUMENT for an invalid tag, a model of another task, or
  // languages that leave several pairs of the named model; NOT_FOUND with the list of models.
  // `source_field` is the request's name for its source language, for the error.
  absl::StatusOr<Found> Find(linnet::v1::Task task, absl::string_view name,
                             absl::string_view source_language, absl::string_view target_language,
                             absl::string_view source_field) const;

  // Two models that translate through a third language.
  struct Pivot {
    Found first;
    Found second;
  };
  // Finds default models that translate from the source language into a third one and from that
  // into the target language, each matched as Find does. The third language is English where that
  // is possible, else the first one in the order of the alphabet. Languages whose primary subtag is
  // that of the source or the target are not tried.
  std::optional<Pivot> FindPivot(absl::string_view source_language,
                                 absl::string_view target_language) const;

  // The source languages for a task with this target language (empty: any), sorted, without
  // duplicates: those of the default models, NOT_FOUND with the list of models if there is none; or
  // those of the named model, which may be none. `with_pivots` adds those for which FindPivot finds
  // two default models.
  absl::StatusOr<std::vector<std::string>> SourceLanguages(linnet::v1::Task task,
                                                           absl::string_view name,
                                                           absl::string_view target_language,
                                                           bool with_pivots) const;

  // Scheduler::Drain for every model.
  void Drain(MonotonicTime deadline);
  // Scheduler::Stop for every model; true if all have ended.
  bool Stop(MonotonicTime deadline);

 private:
  struct Entry {
    std::shared_ptr<ServedModel> model;
    RegisteredModel registered;  // as last read from the registry
    // The name by which a request selects it.
    std::string name() const { return registered.by_default ? model->name() : model->key(); }
    linnet::v1::Model Describe() const;
  };
  // The state of a reload: what it has found and decided so far.
  struct ReloadPlan {
    std::vector<Entry> before;
    std::set<std::string> folders;  // that are read again
    std::vector<Entry> served;      // and still registered, so that no other bundle takes the name
    std::vector<Entry> next;        // to be served
    // The model that is served for each outcome, by its index in the report.
    std::map<size_t, std::shared_ptr<ServedModel>> kept;
    std::map<size_t, RegisteredModel> lost;  // failed to load, and was not served before
    ReloadReport report;
  };

  Catalog(std::filesystem::path root, LoadOptions load, int64_t max_bytes, Metrics& metrics)
      : root_(std::move(root)), load_(std::move(load)), max_bytes_(max_bytes), metrics_(metrics) {}
  std::vector<Entry> entries() const;
  // The served models and the replaced ones that are still in use.
  std::vector<std::shared_ptr<ServedModel>> InMemory() const;
  // The default model whose pair is nearest to these languages, the first by name of several, or
  // one without a model.
  static Found FindPair(linnet::v1::Task task, absl::string_view source, absl::string_view target,
                        const std::vector<Entry>& entries);
  // Logs which models have a pair that a model before them by name answers.
  static void WarnOfSharedPairs(const std::vector<Entry>& entries);
  static absl::StatusOr<Entry> FindEntry(absl::string_view name, const std::vector<Entry>& entries);
  static absl::Status Unknown(absl::string_view name, const std::vector<Entry>& entries);
  // Adds to `languages`, those of models that translate directly, those that need a third language.
  static void AddPivotSources(absl::string_view target_language, const std::vector<Entry>& entries,
                              std::set<std::string>& languages);
  static absl::Status NoPair(linnet::v1::Task task, const std::string& asked,
                             const std::vector<Entry>& entries);
  // Loads one bundle, or keeps what is served in its place, and adds the outcome to the report.
  void ReloadBundle(const RegisteredModel& wanted, ReloadPlan& plan);
  // Adds the names of the models to the outcomes, and those that are removed.
  void CompleteReport(ReloadPlan& plan) const;
  // Replaces the served models by plan.next. `name` is that of the reload.
  void Serve(const std::string& name, ReloadPlan& plan);
  // Total file size of all models in memory, including those in `next`.
  int64_t BytesBeside(const std::vector<Entry>& next) const;
  // Refuses a bundle that has the name of another one: of those that are `served` and stay
  // registered, or will be (`next`). Where models are served already, most of the golden examples
  // must be answered alike.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadOne(const RegisteredModel& wanted,
                                                       const std::vector<Entry>& served,
                                                       const std::vector<Entry>& next);
  // Adds an already served model to `next`, or updates its registry entry there. It stays the
  // default if it replaces a default model that failed to load.
  static void Keep(const std::shared_ptr<ServedModel>& model, const RegisteredModel& wanted,
                   std::vector<Entry>& next);
  // After `wanted` failed to load: the versions that had its labels, or were the default in its
  // place, keep them. Returns the default one, else any of them, or nullptr.
  static std::shared_ptr<ServedModel> KeepNames(const RegisteredModel& wanted,
                                                const std::vector<Entry>& before,
                                                std::vector<Entry>& next);
  // Whether `model` is a folder that cannot be read any more and had this version.
  static bool IsUnreadableVersion(const Entry& entry, const RegisteredModel& model);
  // The folder in the root that contains a bundle: "en-de" for ROOT/en-de/2, "" for the root.
  std::string FolderInRoot(const std::filesystem::path& path) const;
  // The folders in which the model or folder `name` is or was; all for "".
  std::set<std::string> ModelFolders(const std::string& name,
                                     const std::vector<RegisteredModel>& registered,
                                     const std::vector<Entry>& before) const;

  const std::filesystem::path root_;
  const LoadOptions load_;
  const int64_t max_bytes_;
  Metrics& metrics_;
  Mutex reload_mu_;  // held during a reload
  mutable Mutex mu_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);  // by key
  std::map<std::string, absl::Status> not_loaded_ ABSL_GUARDED_BY(mu_);
  int64_t reloads_ ABSL_GUARDED_BY(mu_) = 0;
  // Replaced versions, until Sweep finds that their last call has ended. The thread of that call
  // must not destroy them: it may be the scheduler's own thread.
  std::vector<std::shared_ptr<ServedModel>> retired_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
