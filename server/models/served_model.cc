#include "server/models/served_model.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/log.h"
#include "server/models/bundle_reader.h"
#include "server/schedule/engine_memory.h"

namespace linnet::server {

using linnet::v1::BundleManifest;

namespace {

// An answer that depends on what else is in the batch must not be given to another caller.
absl::Status CheckBatchInvariance(const model::EngineInfo& info) {
  if (info.batch_invariant) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "answer-cache-bytes is set, but the answers of an engine on ", info.device, " in ",
      info.compute_type,
      " depend on what else is in the batch: set batch-invariant, or compute to float32 or int8 on "
      "the CPU, or answer-cache-bytes to 0"));
}

linnet::v1::ModelState ProtoState(LoadState state) {
  switch (state) {
    case LoadState::kAvailable:
      return linnet::v1::MODEL_STATE_AVAILABLE;
    case LoadState::kLoading:
      return linnet::v1::MODEL_STATE_LOADING;
    case LoadState::kLoaded:
      return linnet::v1::MODEL_STATE_LOADED;
  }
  return linnet::v1::MODEL_STATE_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ServedModel>> ReadModel(const RegisteredModel& registered,
                                                       const LoadOptions& options) {
  const std::filesystem::path& path = registered.path;
  const absl::Time before = absl::Now();
  // Shared by the catalog and the calls in flight: a replaced version lives until the last of these
  // has ended.
  auto served = std::make_shared<ServedModel>();
  served->path = path;
  served->version = registered.version;
  ASSIGN_OR_RETURN(served->bundle,
                   ReadBundleWithin(options.supervision.load_timeout, path, options.bundle_keys));
  for (const auto& file : served->bundle.manifest.files()) served->bytes += file.bytes();
  served->languages = model::LanguagePairs(served->bundle.manifest);
  if (!served->bundle.has_tokenizers()) {
    return absl::FailedPreconditionError(absl::StrCat("bundle ", path.string(),
                                                      " has no tokenizers: it serves token ids "
                                                      "only, through linnet-decode"));
  }
  auto load = [&](const model::TokenizerSpec& spec, std::unique_ptr<model::Tokenizer>& tokenizer) {
    auto loaded = model::Tokenizer::Load(spec, served->bundle.special_tokens());
    if (!loaded.ok()) return loaded.status();
    tokenizer = *std::move(loaded);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(load(served->bundle.source_tokenizer(), served->source_tokenizer));
  RETURN_IF_ERROR(load(served->bundle.target_tokenizer(), served->target_tokenizer));
  served->load_time = absl::Now() - before;
  return served;
}

absl::Status StartModel(ServedModel& served, const LoadOptions& options, double max_different,
                        Metrics& metrics) {
  const absl::Time before = absl::Now();
  const std::filesystem::path& path = served.path;
  const BundleManifest& manifest = served.bundle.manifest;
  LoadOnDemand demand{.memory = options.on_demand.memory,
                      .pinned = options.on_demand.pinned.contains(served.name()),
                      .bytes = served.bytes};
  const bool later = demand.memory != nullptr && !demand.pinned;
  if (later) {
    if (const int64_t max = demand.memory->max_bytes(); max > 0 && demand.bytes > max) {
      return absl::FailedPreconditionError(absl::StrCat(
          "bundle ", path.string(), " has ", demand.bytes, " bytes, and max-model-bytes is ", max));
    }
    ASSIGN_OR_RETURN(demand.info, options.on_demand.info(served.bundle));
    demand.warm_up = [&served](int rows) { return WarmUpSequences(served, rows); };
  }
  // Set once the model is accepted: metrics and estimates of its name may be those of a model that
  // is served.
  auto handles = std::make_shared<std::atomic<ModelMetrics*>>(nullptr);
  auto scheduler = Scheduler::Start(
      // The factory is also called to rebuild the engine. The model outlives the scheduler, so the
      // reference stays valid.
      [factory = options.factory, &bundle = served.bundle,
       read_before = later]() mutable -> absl::StatusOr<std::unique_ptr<model::Engine>> {
        // The files may have changed since the bundle was read.
        if (std::exchange(read_before, true)) {
          RETURN_IF_ERROR(model::CheckFiles(bundle));
        }
        return factory(bundle);
      },
      options.batcher,
      [handles, observer = options.observer, key = served.key()](const StepReport& report,
                                                                 absl::Duration cycle) {
        ModelMetrics* const shown = *handles;
        if (shown == nullptr) return;
        shown->StepMade(report);
        if (observer) observer(key, report, cycle);
      },
      options.supervision, served.key(), demand);
  ASSIGN_OR_RETURN(served.scheduler, std::move(scheduler));
  const model::EngineInfo& info = served.scheduler->engine_info();
  if (options.cache != nullptr) {
    RETURN_IF_ERROR(CheckBatchInvariance(info));
    served.cache = std::make_unique<ModelCache>(
        *options.cache,
        absl::StrCat(served.bundle.manifest_sha256, " ", info.device, " ", info.compute));
  }
  served.load_time += absl::Now() - before;
  if (!later) served.golden = AnswerGoldenExamples(served);
  const GoldenResult& golden = served.golden;
  if (golden.different > max_different * golden.examples) {
    return absl::FailedPreconditionError(absl::StrCat("bundle ", path.string(), " answers ",
                                                      golden.different, " of its ", golden.examples,
                                                      " golden examples differently"));
  }
  // At the start there is no other version to serve, and the supervisor may create the engine
  // again.
  if (!later && golden.examples == 0 && max_different < 1) {
    if (const absl::Status status = DecodeOneText(served); !status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("bundle ", path.string(), " cannot decode: ", status.message()));
    }
  }
  served.metrics = *handles = &metrics.AddModel(served.key());
  if (later) {
    Log(LogLevel::kInfo, "model_available",
        {{"model", served.key()}, {"version", manifest.version()}});
    return absl::OkStatus();
  }
  WarmUp(served);
  Log(golden.unexplained == 0 ? LogLevel::kInfo : LogLevel::kWarning, "model_loaded",
      {{"model", served.key()},
       {"version", manifest.version()},
       {"task", linnet::v1::Task_Name(manifest.task())},
       {"languages", served.languages.Summary()},
       {"device", info.device},
       {"compute", info.compute_type},
       {"shortlist", info.shortlist ? "true" : "false"},
       {"threads", info.threads},
       {"rows", info.rows},
       {"encoder_cache_tokens", info.encoder_cache_tokens},
       {"seconds", absl::ToDoubleSeconds(served.load_time)},
       {"golden_examples", golden.examples},
       {"golden_different", golden.different}});
  return absl::OkStatus();
}

void ServedModel::ShowIn(Metrics& page) const {
  const BundleManifest& manifest = bundle.manifest;
  const model::EngineInfo& info = scheduler->engine_info();
  page.ShowModel({.name = key(),
                  .version = manifest.version(),
                  .task = linnet::v1::Task_Name(manifest.task()),
                  .device = info.device,
                  .compute_type = info.compute_type,
                  .sha256 = bundle.model_sha256()},
                 info.rows);
}

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
  *model.mutable_default_options() =
      AsRequest(bundle.default_options(manifest.limits().max_source_tokens()));
  model.set_device(info.device);
  model.set_compute_type(info.compute_type);
  model.set_compute(info.compute);
  model.set_shortlist(info.shortlist);
  model.set_parameters(manifest.architecture().parameters());
  model.set_sha256(bundle.model_sha256());
  model.set_license(manifest.license());
  model.set_description(manifest.description());
  model.set_provisional(manifest.provisional());
  model.set_max_beam_size(info.limits.max_beam_size);
  model.set_state(ProtoState(scheduler->load_stats().state));
  for (const linnet::v1::LanguageTokens& each : languages.all()) {
    // A pair with several styles has several entries.
    const bool first =
        &each == languages.Exact(each.source_language_code(), each.target_language_code());
    if (!first) continue;
    linnet::v1::LanguagePair& pair = *model.add_language_pairs();
    pair.set_source_language_code(each.source_language_code());
    pair.set_target_language_code(each.target_language_code());
  }
  for (const linnet::v1::SummaryStyle style : languages.Styles()) model.add_summary_styles(style);
  return model;
}

}  // namespace linnet::server
