#include "server/models/catalog.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/log.h"
#include "server/models/bundle_reader.h"

namespace linnet::server {

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Load(
    const std::filesystem::path& root, const EngineFactory& factory, const BatcherOptions& options,
    Metrics& metrics, StepObserver observer, int64_t max_bytes, const Supervision& supervision,
    const std::filesystem::path& bundle_keys, AnswerCache* cache,
    const OnDemandOptions& on_demand) {
  std::unique_ptr<Catalog> catalog(new Catalog(
      root, {factory, options, std::move(observer), supervision, bundle_keys, cache, on_demand},
      max_bytes, metrics));
  const ReloadReport report = catalog->Reload();
  RETURN_IF_ERROR(report.status);
  if (!catalog->models().empty()) return catalog;
  RETURN_IF_ERROR(catalog->MissingError());
  return absl::InternalError(absl::StrCat("nothing was loaded from ", root.string()));
}

Catalog::~Catalog() {
  // Wait until this thread holds the last references: a scheduler's own thread, which may just be
  // ending the last call, must not destroy its model.
  auto held = [](const auto& model) { return model.use_count() > 1; };
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    MutexLock lock(mu_);
    for (Entry& entry : entries_) all.push_back(std::move(entry.model));
    for (auto& model : retired_) all.push_back(std::move(model));
  }
  while (std::any_of(all.begin(), all.end(), held)) absl::SleepFor(absl::Milliseconds(1));
}

std::map<std::string, absl::Status> Catalog::not_loaded() const {
  MutexLock lock(mu_);
  return not_loaded_;
}

int64_t Catalog::reloads() const {
  MutexLock lock(mu_);
  return reloads_;
}

absl::Status Catalog::MissingError() const {
  const std::map<std::string, absl::Status> missing = not_loaded();
  if (missing.empty()) return absl::OkStatus();
  const size_t all = missing.size() + models().size();
  std::string message = absl::StrCat(missing.size(), " of ", all, all == 1 ? " bundle" : " bundles",
                                     " in ", root_.string(), " cannot be loaded");
  // One line each: a cause has commas, colons and semicolons.
  for (const auto& [folder, cause] : missing) {
    const std::string name = folder == "." ? root_.filename().string() : folder;
    absl::StrAppend(&message, "\n  ", absl::CHexEscape(name), ": ", cause.message());
  }
  return absl::Status(missing.begin()->second.code(), message);
}

std::vector<Catalog::Entry> Catalog::entries() const {
  MutexLock lock(mu_);
  return entries_;
}

std::vector<std::shared_ptr<ServedModel>> Catalog::models() const {
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const Entry& entry : entries()) models.push_back(entry.model);
  return models;
}

std::vector<std::shared_ptr<ServedModel>> Catalog::InMemory() const {
  std::vector<std::shared_ptr<ServedModel>> all;
  MutexLock lock(mu_);
  for (const Entry& entry : entries_) all.push_back(entry.model);
  all.insert(all.end(), retired_.begin(), retired_.end());
  return all;
}

linnet::v1::Model Catalog::Entry::Describe() const {
  linnet::v1::Model described = model->Describe();
  described.set_name(name());
  return described;
}

std::vector<linnet::v1::Model> Catalog::List() const {
  std::vector<linnet::v1::Model> list;
  for (const Entry& entry : entries()) list.push_back(entry.Describe());
  return list;
}

int64_t Catalog::BytesBeside(const std::vector<Entry>& next) const {
  std::set<const ServedModel*> seen;
  int64_t bytes = 0;
  auto add = [&](const ServedModel& model) {
    bytes += seen.insert(&model).second ? model.bytes : 0;
  };
  for (const Entry& entry : next) add(*entry.model);
  MutexLock lock(mu_);
  for (const Entry& entry : entries_) add(*entry.model);
  for (const auto& model : retired_) add(*model);
  return bytes;
}

absl::StatusOr<std::shared_ptr<ServedModel>> Catalog::LoadOne(const RegisteredModel& wanted,
                                                              const std::vector<Entry>& served,
                                                              const std::vector<Entry>& next) {
  RETURN_IF_ERROR(wanted.status);
  std::error_code error;
  int64_t bytes = 0;
  for (std::filesystem::directory_iterator file(wanted.path, error), end; !error && file != end;
       file.increment(error))
    bytes += file->is_regular_file(error) ? static_cast<int64_t>(file->file_size(error)) : 0;
  if (const int64_t held = BytesBeside(next); max_bytes_ > 0 && held + bytes > max_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "bundle ", wanted.path.string(), " has ", bytes, " bytes, the models in memory have ", held,
        ", and --max-model-bytes is ", max_bytes_));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ServedModel> loaded, ReadModel(wanted, load_));
  for (const std::vector<Entry>* entries : {&served, &next}) {
    for (const Entry& other : *entries) {
      if (other.registered.path == wanted.path || other.model->key() != loaded->key()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("bundles ", other.registered.path.string(), " and ", wanted.path.string(),
                       " are both named \"", other.model->key(), "\""));
    }
  }
  // A server that starts serves what there is; one that serves already keeps what it has.
  const double max_different = entries().empty() ? 1.0 : 0.5;
  RETURN_IF_ERROR(StartModel(*loaded, load_, max_different, metrics_));
  return loaded;
}

bool Catalog::IsUnreadableVersion(const Entry& entry, const RegisteredModel& model) {
  return !model.status.ok() && entry.registered.path.parent_path() == model.path;
}

std::string Catalog::FolderInRoot(const std::filesystem::path& path) const {
  const std::filesystem::path folder = *path.lexically_relative(root_).begin();
  return folder == "." ? "" : folder.string();
}

std::set<std::string> Catalog::ModelFolders(const std::string& name,
                                            const std::vector<RegisteredModel>& registered,
                                            const std::vector<Entry>& before) const {
  std::set<std::string> folders;
  for (const Entry& entry : before) {
    const std::string folder = FolderInRoot(entry.registered.path);
    if (name.empty() || name == folder || name == entry.model->name()) folders.insert(folder);
  }
  for (const RegisteredModel& wanted : registered) {
    const std::string folder = FolderInRoot(wanted.path);
    if (name.empty() || name == folder) folders.insert(folder);
  }
  return folders;
}

ReloadReport Catalog::Reload(const std::string& name) {
  MutexLock one_at_a_time(reload_mu_);
  ReloadPlan plan;
  auto registered = ReadRegistry(root_);
  if (!registered.ok()) return {.status = registered.status()};
  plan.before = entries();
  plan.folders = ModelFolders(name, *registered, plan.before);
  if (plan.folders.empty()) return {.status = Unknown(name, plan.before)};
  for (const Entry& entry : plan.before) {
    const auto same_path = [&](const RegisteredModel& model) {
      return model.path == entry.registered.path || IsUnreadableVersion(entry, model);
    };
    if (std::any_of(registered->begin(), registered->end(), same_path))
      plan.served.push_back(entry);
    if (!plan.folders.contains(FolderInRoot(entry.registered.path))) plan.next.push_back(entry);
  }
  for (const RegisteredModel& wanted : *registered) {
    if (plan.folders.contains(FolderInRoot(wanted.path))) ReloadBundle(wanted, plan);
  }
  // After all others are in `next`: the version that keeps a lost one's names may be one of them.
  for (const auto& [i, wanted] : plan.lost)
    plan.kept[i] = KeepNames(wanted, plan.before, plan.next);
  CompleteReport(plan);
  std::sort(plan.next.begin(), plan.next.end(),
            [](const Entry& a, const Entry& b) { return a.model->key() < b.model->key(); });
  WarnOfSharedPairs(plan.next);
  Serve(name, plan);
  return std::move(plan.report);
}

void Catalog::ReloadBundle(const RegisteredModel& wanted, ReloadPlan& plan) {
  using What = ReloadReport::Outcome::What;
  const size_t index = plan.report.outcomes.size();
  ReloadReport::Outcome& outcome = plan.report.outcomes.emplace_back();
  outcome.folder = wanted.path.lexically_relative(root_).string();
  const auto fail = [&](absl::string_view event, absl::Status status) {
    outcome.what = What::kFailed;
    outcome.status = std::move(status);
    Log(LogLevel::kError, event,
        {{"path", wanted.path.string()}, {"why", outcome.status.message()}});
  };
  const auto old = std::find_if(plan.before.begin(), plan.before.end(), [&](const Entry& entry) {
    return entry.registered.path == wanted.path;
  });
  const auto keep = [&] {
    Keep(old->model, wanted, plan.next);
    plan.kept[index] = old->model;
  };
  if (old != plan.before.end()) {
    const absl::StatusOr<bool> unchanged =
        IsUnchangedWithin(load_.supervision.load_timeout, old->model->bundle);
    if (!unchanged.ok() || *unchanged) keep();
    // The model in memory is intact, but a restart would need the files.
    if (!unchanged.ok()) fail("model_damaged", unchanged.status());
    if (!unchanged.ok() || *unchanged) return;
  }
  auto loaded = LoadOne(wanted, plan.served, plan.next);
  if (loaded.ok()) {
    outcome.what = What::kLoaded;
    plan.kept[index] = *loaded;
    // It may have another name now, and leave the old one to a bundle after it.
    std::erase_if(plan.served,
                  [&](const Entry& entry) { return entry.registered.path == wanted.path; });
    plan.next.push_back({*std::move(loaded), wanted});
    return;
  }
  fail("model_not_loaded", loaded.status());
  if (old != plan.before.end()) return keep();
  bool is_lost = true;
  for (const Entry& entry : plan.before) {
    if (!IsUnreadableVersion(entry, wanted)) continue;
    is_lost = false;
    plan.next.push_back(entry);
    if (entry.registered.by_default) plan.kept[index] = entry.model;
  }
  if (is_lost) plan.lost[index] = wanted;
}

void Catalog::CompleteReport(ReloadPlan& plan) const {
  std::vector<ReloadReport::Outcome>& outcomes = plan.report.outcomes;
  for (const auto& [i, model] : plan.kept) {
    const auto entry =
        std::find_if(plan.next.begin(), plan.next.end(),
                     [&model = model](const Entry& other) { return other.model == model; });
    if (entry == plan.next.end()) continue;
    outcomes[i].model = entry->name();
    outcomes[i].model_version = entry->model->bundle.manifest.version();
  }
  for (const Entry& entry : plan.before) {
    auto same_path = [&](const Entry& other) {
      return other.registered.path == entry.registered.path;
    };
    if (std::any_of(plan.next.begin(), plan.next.end(), same_path)) continue;
    outcomes.push_back({.folder = entry.registered.path.lexically_relative(root_).string(),
                        .what = ReloadReport::Outcome::What::kRemoved,
                        .model = entry.name(),
                        .model_version = entry.model->bundle.manifest.version()});
  }
  std::sort(outcomes.begin(), outcomes.end(),
            [](const auto& a, const auto& b) { return a.folder < b.folder; });
}

void Catalog::Serve(const std::string& name, ReloadPlan& plan) {
  const auto is_in = [](const std::vector<Entry>& entries, const Entry& wanted) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.model == wanted.model; });
  };
  std::vector<std::pair<std::shared_ptr<ServedModel>, bool>> emptied;  // and: is it served on
  {
    MutexLock lock(mu_);
    ++reloads_;
    for (const Entry& entry : plan.before) {
      const bool still_served = is_in(plan.next, entry);
      if (!still_served) retired_.push_back(entry.model);
      if (entry.model->cache != nullptr &&
          plan.folders.contains(FolderInRoot(entry.registered.path)))
        emptied.emplace_back(entry.model, still_served);
    }
    entries_ = std::move(plan.next);
    for (const Entry& entry : entries_) {
      if (!is_in(plan.before, entry)) entry.model->ShowIn(metrics_);
    }
    std::erase_if(not_loaded_, [&](const auto& missing) {
      const std::string& folder = missing.first;
      return name.empty() || plan.folders.contains(folder.substr(0, folder.find('/')));
    });
    for (const ReloadReport::Outcome& outcome : plan.report.outcomes) {
      // If a previous version remains served, requests still get an answer.
      if (outcome.what == ReloadReport::Outcome::What::kFailed && outcome.model.empty())
        not_loaded_.emplace(outcome.folder, outcome.status);
    }
  }
  // Without the lock: a cache may have millions of answers.
  for (const auto& [model, served_on] : emptied)
    served_on ? model->cache->Clear() : model->cache->Close();
}

void Catalog::Keep(const std::shared_ptr<ServedModel>& model, const RegisteredModel& wanted,
                   std::vector<Entry>& next) {
  const auto entry = std::find_if(next.begin(), next.end(),
                                  [&](const Entry& other) { return other.model == model; });
  if (entry == next.end()) return next.push_back({model, wanted});
  const bool by_default = entry->registered.by_default;  // set by KeepNames or an earlier Keep
  entry->registered = wanted;
  entry->registered.by_default |= by_default;
}

std::shared_ptr<ServedModel> Catalog::KeepNames(const RegisteredModel& wanted,
                                                const std::vector<Entry>& before,
                                                std::vector<Entry>& next) {
  auto has = [](const RegisteredModel& model, const std::string& label) {
    return std::find(model.labels.begin(), model.labels.end(), label) != model.labels.end();
  };
  std::shared_ptr<ServedModel> replacement;
  for (const Entry& old : before) {
    if (old.registered.version.empty() ||
        old.registered.path.parent_path() != wanted.path.parent_path())
      continue;
    std::vector<std::string> labels;
    for (const std::string& label : wanted.labels) {
      if (has(old.registered, label)) labels.push_back(label);
    }
    const bool by_default = wanted.by_default && old.registered.by_default;
    if (labels.empty() && !by_default) continue;
    auto entry = std::find_if(next.begin(), next.end(), [&](const Entry& other) {
      return other.registered.path == old.registered.path;
    });
    if (entry == next.end()) {
      entry = next.insert(next.end(), old);
      entry->registered.labels.clear();
      entry->registered.by_default = false;
    }
    for (std::string& label : labels) {
      if (!has(entry->registered, label)) entry->registered.labels.push_back(std::move(label));
    }
    std::sort(entry->registered.labels.begin(), entry->registered.labels.end());
    entry->registered.by_default |= by_default;
    if (by_default || replacement == nullptr) replacement = entry->model;
  }
  return replacement;
}

void Catalog::Sweep() {
  std::vector<std::shared_ptr<ServedModel>> unused;
  {
    MutexLock lock(mu_);
    // No new reference to a retired model can be taken, so a use count of 1 is final. A model whose
    // scheduler has not ended is kept: its destructor would block, for ever if its engine stalls.
    const auto in_use = [now = MonotonicNow()](const auto& model) {
      return model.use_count() > 1 || !model->scheduler->Stop(now);
    };
    const auto first = std::partition(retired_.begin(), retired_.end(), in_use);
    unused.assign(std::make_move_iterator(first), std::make_move_iterator(retired_.end()));
    retired_.erase(first, retired_.end());
    for (const auto& model : unused) {
      const bool still_served =
          std::any_of(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.model->key() == model->key(); });
      if (!still_served) metrics_.RemoveModel(model->key());
    }
  }
  for (const auto& model : unused)
    Log(LogLevel::kInfo, "model_unloaded",
        {{"model", model->key()}, {"path", model->path.string()}});
}

void Catalog::Drain(MonotonicTime deadline) {
  for (const auto& model : InMemory()) model->scheduler->Drain(deadline);
}

bool Catalog::Stop(MonotonicTime deadline) {
  bool ended = true;
  for (const auto& model : InMemory()) ended &= model->scheduler->Stop(deadline);
  return ended;
}

void Catalog::MaintainSchedulers(MonotonicTime now) {
  for (const auto& model : InMemory()) model->scheduler->Maintain(now);
}

}  // namespace linnet::server
