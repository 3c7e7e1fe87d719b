// Catalog: selects the model for a request.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "model/runtime/bundle/language_code.h"
#include "model/runtime/bundle/languages.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/log.h"
#include "server/models/catalog.h"

namespace linnet::server {
namespace {

using linnet::v1::Task;

absl::string_view TaskVerb(Task task) {
  return task == linnet::v1::TASK_TRANSLATE ? "translates" : "summarises";
}

// Describes what a model translates, or the languages that it summarises.
std::string PairList(const ServedModel& model) {
  return model.bundle.manifest.task() == linnet::v1::TASK_TRANSLATE ? model.languages.Summary()
                                                                    : model.languages.Languages();
}

// Checks subtags of 1 to 8 letters and digits, the first of letters only: enough of BCP-47 to catch
// typing errors.
bool IsLanguageTag(absl::string_view tag) {
  if (tag.size() > 35) return false;  // RFC 5646, 4.4.1: max length without extensions
  bool first = true;
  for (absl::string_view subtag : absl::StrSplit(tag, '-')) {
    if (subtag.empty() || subtag.size() > 8) return false;
    for (char c : subtag) {
      if (!absl::ascii_isalnum(c) || (first && !absl::ascii_isalpha(c))) return false;
    }
    if (first && subtag.size() < 2) return false;
    first = false;
  }
  return true;
}

absl::Status CheckTag(absl::string_view field, absl::string_view tag) {
  if (tag.empty() || IsLanguageTag(tag)) return absl::OkStatus();
  return BadField(field, Reason::kBadLanguageCode,
                  absl::StrCat("\"", absl::CHexEscape(tag.substr(0, 40)),
                               "\" is no language code (BCP-47), such as \"en\" or \"de-AT\""));
}

absl::string_view Primary(absl::string_view tag) { return tag.substr(0, tag.find('-')); }

bool SamePrimary(absl::string_view a, absl::string_view b) {
  return absl::EqualsIgnoreCase(Primary(a), Primary(b));
}

// "en to de", with the codes in their canonical form.
std::string PairName(const linnet::v1::LanguageTokens& pair) {
  const auto canonical = [](const std::string& code) {
    return model::CanonicalLanguage(code).value_or(absl::AsciiStrToLower(code));
  };
  return absl::StrCat(canonical(pair.source_language_code()), " to ",
                      canonical(pair.target_language_code()));
}

// The languages of a summariser's entries: "en/de".
std::string JoinLanguages(const std::vector<linnet::v1::LanguageTokens>& pairs) {
  std::vector<std::string> languages;
  for (const linnet::v1::LanguageTokens& pair : pairs)
    languages.push_back(pair.source_language_code());
  return absl::StrJoin(languages, "/");
}

// Joins names for an error, which has three copies of them. A client that gets details of more than
// 8 KB sees an error of gRPC instead.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMaxBytes = 1000;
  std::string listed;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && listed.size() + names[i].size() > kMaxBytes) {
      absl::StrAppend(&listed, " and ", names.size() - i, " more (ListModels names all)");
      break;
    }
    absl::StrAppend(&listed, i == 0 ? "" : ", ", absl::CHexEscape(names[i].substr(0, 300)));
  }
  return listed;
}

// The languages of a named model leave several pairs: asks for the one that is missing.
absl::Status CheckOnePair(Task task, absl::string_view name, const ServedModel& model,
                          absl::string_view source, absl::string_view target,
                          absl::string_view source_field) {
  const std::vector<std::string> sources = model.languages.Sources(target);
  if (source.empty() && sources.size() > 1) {
    return BadField(
        source_field, Reason::kMissing,
        absl::StrCat("is required: \"", name, "\" ", TaskVerb(task), " ", PairList(model)));
  }
  const std::vector<std::string> targets = model.languages.Targets(source);
  if (target.empty() && task == linnet::v1::TASK_TRANSLATE && targets.size() > 1) {
    return BadField(
        "target_language_code", Reason::kMissing,
        absl::StrCat("is required: \"", name, "\" ", TaskVerb(task), " ", PairList(model)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Catalog::Unknown(absl::string_view name, const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    names.push_back(entry.name());
    for (const std::string& label : entry.registered.labels)
      names.push_back(absl::StrCat(entry.model->name(), "@", label));
  }
  const std::string shown = absl::CHexEscape(name.substr(0, 80));
  return NoSuchModel(shown, absl::StrCat("no model \"", shown, "\": there is ", Listed(names)));
}

absl::StatusOr<Catalog::Entry> Catalog::FindEntry(absl::string_view name,
                                                  const std::vector<Entry>& entries) {
  if (name.empty()) return BadField("name", Reason::kMissing, "is required");
  const absl::string_view base = name.substr(0, name.find('@'));
  const absl::string_view version = base == name ? "" : name.substr(base.size() + 1);
  for (const Entry& entry : entries) {
    if (entry.model->name() != base) continue;
    const RegisteredModel& registered = entry.registered;
    const bool labelled =
        std::count(registered.labels.begin(), registered.labels.end(), std::string(version)) > 0;
    if (base == name ? registered.by_default : registered.version == version || labelled)
      return entry;
  }
  return Unknown(name, entries);
}

absl::StatusOr<std::shared_ptr<ServedModel>> Catalog::Named(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Entry entry, FindEntry(name, entries()));
  return entry.model;
}

absl::StatusOr<linnet::v1::Model> Catalog::Describe(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Entry entry, FindEntry(name, entries()));
  return entry.Describe();
}

absl::StatusOr<Catalog::Found> Catalog::Find(Task task, absl::string_view name,
                                             absl::string_view source_language,
                                             absl::string_view target_language,
                                             absl::string_view source_field) const {
  RETURN_IF_ERROR(CheckTag(source_field, source_language));
  RETURN_IF_ERROR(CheckTag("target_language_code", target_language));
  if (!name.empty()) {
    ASSIGN_OR_RETURN(std::shared_ptr<ServedModel> model, Named(name));
    if (const Task its = model->bundle.manifest.task(); its != task) {
      return BadField("model", Reason::kWrongTask,
                      absl::StrCat("\"", name, "\" ", TaskVerb(its), ": name one that ",
                                   TaskVerb(task), ", or none"));
    }
    const auto* const languages = model->languages.Find(source_language, target_language);
    if (languages == nullptr) {
      return BadField("model", Reason::kWrongLanguages,
                      absl::StrCat("\"", name, "\" ", TaskVerb(task), " ", PairList(*model),
                                   ": ask for that, or name another model"));
    }
    RETURN_IF_ERROR(
        CheckOnePair(task, name, *model, source_language, target_language, source_field));
    return Found{std::move(model), languages};
  }
  if (source_language.empty()) {
    return BadField(source_field, Reason::kMissing, "is required where no model is named");
  }
  const std::vector<Entry> entries = this->entries();
  if (Found found = FindPair(task, source_language, target_language, entries);
      found.model != nullptr)
    return found;
  const std::string asked = target_language.empty()
                                ? std::string(source_language)
                                : absl::StrCat(source_language, " to ", target_language);
  return NoPair(task, asked, entries);
}

Catalog::Found Catalog::FindPair(Task task, absl::string_view source, absl::string_view target,
                                 const std::vector<Entry>& entries) {
  Found nearest;
  int distance = 0;
  for (const Entry& entry : entries) {
    const ServedModel& model = *entry.model;
    if (!entry.registered.by_default || model.bundle.manifest.task() != task) continue;
    const model::LanguagePairs::Match match = model.languages.Nearest(source, target);
    if (match.pair == nullptr) continue;
    // If several models are equally near, the first by name is taken.
    if (nearest.model == nullptr || match.distance < distance) {
      nearest = {entry.model, match.pair};
      distance = match.distance;
    }
    if (distance == 0) break;
  }
  return nearest;
}

std::optional<Catalog::Pivot> Catalog::FindPivot(absl::string_view source_language,
                                                 absl::string_view target_language) const {
  constexpr Task kTask = linnet::v1::TASK_TRANSLATE;
  // There and back again would only lose something.
  if (SamePrimary(source_language, target_language)) return std::nullopt;
  const std::vector<Entry> entries = this->entries();
  std::set<std::pair<bool, std::string>> languages;  // English sorts first
  for (const Entry& entry : entries) {
    if (!entry.registered.by_default || entry.model->bundle.manifest.task() != kTask) continue;
    for (const std::string& target : entry.model->languages.Targets(source_language)) {
      std::string language = absl::AsciiStrToLower(target);
      const bool english = Primary(language) == "en";
      languages.emplace(!english, std::move(language));
    }
  }
  for (const auto& [other, language] : languages) {
    if (SamePrimary(language, source_language) || SamePrimary(language, target_language)) continue;
    Pivot pivot = {FindPair(kTask, source_language, language, entries),
                   FindPair(kTask, language, target_language, entries)};
    if (pivot.first.model != nullptr && pivot.second.model != nullptr) return pivot;
  }
  return std::nullopt;
}

void Catalog::AddPivotSources(absl::string_view target_language, const std::vector<Entry>& entries,
                              std::set<std::string>& languages) {
  constexpr Task kTask = linnet::v1::TASK_TRANSLATE;
  std::map<std::string, bool> leads;  // whether a language is translated into the target
  const auto leads_to_target = [&](const std::string& language) {
    const auto [found, added] = leads.emplace(language, false);
    if (added && !SamePrimary(language, target_language))
      found->second = FindPair(kTask, language, target_language, entries).model != nullptr;
    return found->second;
  };
  for (const Entry& entry : entries) {
    if (!entry.registered.by_default || entry.model->bundle.manifest.task() != kTask) continue;
    for (const linnet::v1::LanguageTokens& pair : entry.model->languages.all()) {
      const std::string& source = pair.source_language_code();
      const std::string& target = pair.target_language_code();
      if (languages.contains(source) || SamePrimary(source, target) ||
          SamePrimary(source, target_language))
        continue;
      if (leads_to_target(target)) languages.insert(source);
    }
  }
}

absl::Status Catalog::NoPair(Task task, const std::string& asked,
                             const std::vector<Entry>& entries) {
  std::vector<std::string> listed;
  std::set<std::string> seen;
  for (const Entry& entry : entries) {
    if (!entry.registered.by_default || entry.model->bundle.manifest.task() != task) continue;
    // A pair of several models is listed once.
    std::vector<linnet::v1::LanguageTokens> pairs;
    for (const linnet::v1::LanguageTokens& pair : entry.model->languages.all()) {
      if (seen.insert(PairName(pair)).second) pairs.push_back(pair);
    }
    if (pairs.empty()) continue;
    listed.push_back(task == linnet::v1::TASK_TRANSLATE ? model::PairSummary(pairs)
                                                        : JoinLanguages(pairs));
  }
  return NoSuchModel(asked,
                     absl::StrCat("no model ", TaskVerb(task), asked.empty() ? "" : " ", asked,
                                  ": there is ", listed.empty() ? "none at all" : Listed(listed)));
}

void Catalog::WarnOfSharedPairs(const std::vector<Entry>& entries) {
  std::map<std::pair<Task, std::string>, const ServedModel*> first;  // by pair
  for (const Entry& entry : entries) {
    if (!entry.registered.by_default) continue;
    const ServedModel& model = *entry.model;
    std::map<const ServedModel*, std::vector<std::string>> shared;  // with a model before it
    std::set<std::string> own;  // a pair with several styles has several entries
    for (const linnet::v1::LanguageTokens& pair : model.languages.all()) {
      const std::string name = PairName(pair);
      if (!own.insert(name).second) continue;
      const auto [found, added] =
          first.emplace(std::pair(model.bundle.manifest.task(), name), &model);
      if (!added) shared[found->second].push_back(name);
    }
    for (const auto& [other, pairs] : shared) {
      Log(LogLevel::kWarning, "pair_served_twice",
          {{"model", model.name()},
           {"pairs", Listed(pairs)},
           {"answered_by", other->name()},
           {"why",
            "the first model by name answers requests that name none; a request chooses "
            "the other one with `model`"}});
    }
  }
}

absl::StatusOr<std::vector<std::string>> Catalog::SourceLanguages(Task task, absl::string_view name,
                                                                  absl::string_view target_language,
                                                                  bool with_pivots) const {
  RETURN_IF_ERROR(CheckTag("target_language_code", target_language));
  std::set<std::string> languages;
  const auto add = [&](const ServedModel& model) {
    for (std::string& language : model.languages.Sources(target_language))
      languages.insert(std::move(language));
  };
  const std::vector<Entry> entries = this->entries();
  if (!name.empty()) {
    ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Named(name));
    add(*model);
  } else {
    for (const Entry& entry : entries) {
      if (entry.registered.by_default && entry.model->bundle.manifest.task() == task)
        add(*entry.model);
    }
    if (languages.empty()) {
      return NoPair(task, target_language.empty() ? "" : absl::StrCat("to ", target_language),
                    entries);
    }
    if (with_pivots) AddPivotSources(target_language, entries, languages);
  }
  return std::vector<std::string>(languages.begin(), languages.end());
}

}  // namespace linnet::server
