#include "server/catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/golden.h"
#include "server/log.h"

namespace linnet::server {
namespace {

using linnet::v1::BundleManifest;
using linnet::v1::Task;

absl::string_view TaskVerb(Task task) {
  return task == linnet::v1::TASK_TRANSLATE ? "translates" : "summarises";
}

std::string Pair(const BundleManifest& manifest) {
  return manifest.task() == linnet::v1::TASK_TRANSLATE
             ? absl::StrCat(manifest.source_language_code(), " to ",
                            manifest.target_language_code())
             : manifest.source_language_code();
}

// Letters and digits in subtags of 1 to 8, the first of letters: enough of BCP-47 to tell a typing
// error from a language.
bool IsLanguageTag(absl::string_view tag) {
  if (tag.size() > 35) return false;  // RFC 5646, 4.4.1: the longest without extensions
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

bool SameTag(absl::string_view a, absl::string_view b) { return absl::EqualsIgnoreCase(a, b); }
absl::string_view Primary(absl::string_view tag) { return tag.substr(0, tag.find('-')); }

// Whether a model for `offered` may answer a request for `asked`.
bool Serves(absl::string_view offered, absl::string_view asked) {
  return SameTag(offered, asked) || SameTag(offered, Primary(asked));
}

bool ServesPair(const BundleManifest& manifest, absl::string_view source,
                absl::string_view target) {
  return (source.empty() || Serves(manifest.source_language_code(), source)) &&
         (target.empty() || Serves(manifest.target_language_code(), target));
}

bool IsPair(const BundleManifest& manifest, absl::string_view source, absl::string_view target) {
  return SameTag(manifest.source_language_code(), source) &&
         (target.empty() || SameTag(manifest.target_language_code(), target));
}

absl::StatusOr<std::unique_ptr<ServedModel>> LoadModel(const std::filesystem::path& path,
                                                       const Catalog::EngineFactory& factory,
                                                       const BatcherOptions& options,
                                                       Metrics& metrics) {
  const absl::Time before = absl::Now();
  absl::StatusOr<model::Bundle> bundle = model::ReadBundle(path);
  if (!bundle.ok()) return bundle.status();
  auto served = std::make_unique<ServedModel>();
  served->bundle = *std::move(bundle);
  const BundleManifest& manifest = served->bundle.manifest;
  if (!served->bundle.has_tokenizers()) {
    return absl::FailedPreconditionError(absl::StrCat("bundle ", path.string(),
                                                      " has no tokenizers: it serves token ids "
                                                      "only, through linnet-decode"));
  }
  auto load = [&](const model::TokenizerSpec& spec, std::unique_ptr<model::Tokenizer>& tokenizer) {
    auto loaded = model::Tokenizer::Load(spec, served->bundle.special_tokens());
    if (loaded.ok()) tokenizer = *std::move(loaded);
    return loaded.status();
  };
  if (auto status = load(served->bundle.source_tokenizer(), served->source_tokenizer); !status.ok())
    return status;
  if (auto status = load(served->bundle.target_tokenizer(), served->target_tokenizer); !status.ok())
    return status;

  // The handles of the metrics are known once the engine is, and the engine's first step comes
  // after that.
  auto handles = std::make_shared<ModelMetrics*>(nullptr);
  auto scheduler = Scheduler::Start([&] { return factory(served->bundle); }, options,
                                    [handles](const StepReport& report, absl::Duration step) {
                                      (*handles)->StepMade(report, step);
                                    });
  if (!scheduler.ok()) return scheduler.status();
  served->scheduler = *std::move(scheduler);
  const model::EngineInfo& info = served->scheduler->engine_info();
  const absl::Duration load_time = absl::Now() - before;
  served->metrics = *handles = &metrics.AddModel({.name = manifest.name(),
                                                  .version = manifest.version(),
                                                  .task = linnet::v1::Task_Name(manifest.task()),
                                                  .device = info.device,
                                                  .compute_type = info.compute_type,
                                                  .sha256 = served->bundle.model_sha256()},
                                                 info.rows, info.memory_tokens, load_time);
  const GoldenResult golden = AnswerGoldenExamples(*served);
  Log(golden.different == 0 ? LogLevel::kInfo : LogLevel::kWarning, "model_loaded",
      {{"model", manifest.name()},
       {"version", manifest.version()},
       {"task", linnet::v1::Task_Name(manifest.task())},
       {"languages", Pair(manifest)},
       {"device", info.device},
       {"compute", info.compute_type},
       {"threads", info.threads},
       {"rows", info.rows},
       {"memory_tokens", info.memory_tokens},
       {"seconds", absl::ToDoubleSeconds(load_time)},
       {"golden_examples", golden.examples},
       {"golden_different", golden.different}});
  return served;
}

}  // namespace

linnet::v1::Model ServedModel::Describe() const {
  const BundleManifest& manifest = bundle.manifest;
  const model::EngineInfo& info = scheduler->engine_info();
  linnet::v1::Model model;
  model.set_name(manifest.name());
  model.set_version(manifest.version());
  model.set_task(manifest.task());
  model.set_source_language_code(manifest.source_language_code());
  model.set_target_language_code(manifest.target_language_code());
  *model.mutable_limits() = manifest.limits();
  const model::SearchOptions defaults =
      bundle.default_options(manifest.limits().max_source_tokens());
  linnet::v1::DecodingOptions& options = *model.mutable_default_options();
  options.set_beam_size(defaults.beam_size);
  options.set_length_penalty(defaults.length_penalty);
  options.set_min_target_tokens(defaults.min_target_tokens);
  options.set_max_target_tokens(defaults.max_target_tokens);
  options.set_unknown_penalty(defaults.unknown_penalty);
  options.set_no_repeat_ngram_size(defaults.no_repeat_ngram_size);
  options.set_n_best(defaults.n_best);
  options.set_normalize_scores(defaults.normalize_scores);
  options.set_temperature(defaults.temperature);
  options.set_top_k(defaults.top_k);
  options.set_top_p(defaults.top_p);
  model.set_device(info.device);
  model.set_compute_type(info.compute_type);
  model.set_parameters(manifest.architecture().parameters());
  model.set_sha256(bundle.model_sha256());
  model.set_license(manifest.license());
  model.set_description(manifest.description());
  model.set_provisional(manifest.provisional());
  model.set_max_beam_size(info.limits.max_beam_size);
  return model;
}

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Load(const std::filesystem::path& root,
                                                       const EngineFactory& factory,
                                                       const BatcherOptions& options,
                                                       Metrics& metrics) {
  absl::StatusOr<std::vector<std::filesystem::path>> paths = model::FindBundles(root);
  if (!paths.ok()) return paths.status();
  auto catalog = std::make_unique<Catalog>();
  for (const std::filesystem::path& path : *paths) {
    absl::StatusOr<std::unique_ptr<ServedModel>> model = LoadModel(path, factory, options, metrics);
    if (!model.ok()) return model.status();
    for (const auto& other : catalog->models_) {
      if (other->name() == (*model)->name()) {
        return absl::FailedPreconditionError(
            absl::StrCat("bundles ", other->bundle.path.string(), " and ", path.string(),
                         " are both named \"", other->name(), "\""));
      }
    }
    catalog->models_.push_back(*std::move(model));
  }
  std::sort(catalog->models_.begin(), catalog->models_.end(),
            [](const auto& a, const auto& b) { return a->name() < b->name(); });
  return catalog;
}

absl::StatusOr<ServedModel*> Catalog::Named(absl::string_view name) const {
  if (name.empty()) return BadField("name", Reason::kMissing, "is required");
  for (const auto& model : models_) {
    if (model->name() == name) return model.get();
  }
  auto names = [](std::string* out, const auto& model) { absl::StrAppend(out, model->name()); };
  // A start of the name is enough: what details may hold is limited.
  const std::string shown = absl::CHexEscape(name.substr(0, 80));
  return NoSuchModel(shown, absl::StrCat("no model \"", shown, "\": there is ",
                                         absl::StrJoin(models_, ", ", names)));
}

absl::StatusOr<ServedModel*> Catalog::Find(Task task, absl::string_view name,
                                           absl::string_view source_language,
                                           absl::string_view target_language,
                                           absl::string_view source_field) const {
  if (auto status = CheckTag(source_field, source_language); !status.ok()) return status;
  if (auto status = CheckTag("target_language_code", target_language); !status.ok()) return status;
  if (!name.empty()) {
    absl::StatusOr<ServedModel*> model = Named(name);
    if (!model.ok()) return model;
    const BundleManifest& manifest = (*model)->bundle.manifest;
    if (manifest.task() != task) {
      return BadField("model", Reason::kWrongTask,
                      absl::StrCat("\"", name, "\" ", TaskVerb(manifest.task()), ": name one that ",
                                   TaskVerb(task), ", or none"));
    }
    if (!ServesPair(manifest, source_language, target_language)) {
      return BadField("model", Reason::kWrongLanguages,
                      absl::StrCat("\"", name, "\" ", TaskVerb(task), " ", Pair(manifest),
                                   ": ask for that, or name another model"));
    }
    return model;
  }
  if (source_language.empty()) {
    return BadField(source_field, Reason::kMissing, "is required where no model is named");
  }
  for (auto fits : {IsPair, ServesPair}) {
    for (const auto& model : models_) {
      const BundleManifest& manifest = model->bundle.manifest;
      if (manifest.task() == task && fits(manifest, source_language, target_language))
        return model.get();
    }
  }
  std::vector<std::string> pairs;
  for (const auto& model : models_) {
    if (model->bundle.manifest.task() == task) pairs.push_back(Pair(model->bundle.manifest));
  }
  const std::string asked = target_language.empty()
                                ? std::string(source_language)
                                : absl::StrCat(source_language, " to ", target_language);
  return NoSuchModel(asked,
                     absl::StrCat("no model ", TaskVerb(task), " ", asked, ": there is ",
                                  pairs.empty() ? "none at all" : absl::StrJoin(pairs, ", ")));
}

void Catalog::Drain(absl::Time deadline) {
  for (const auto& model : models_) model->scheduler->Drain(deadline);
}

}  // namespace linnet::server
