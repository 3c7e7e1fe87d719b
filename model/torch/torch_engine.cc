#include "model/torch/torch_engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/ops/ops.h"
#include "model/ops/search/beam_params.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/search/shortlist.h"
#include "model/torch/decoding/device_decoder.h"
#include "model/torch/module/catch_torch_errors.h"
#include "model/torch/module/compute_type.h"
#include "model/torch/module/device.h"
#include "model/torch/module/scripted_model.h"
#include "model/torch/module/step_threads.h"
#include "model/torch/module/usable_cores.h"
#include "model/torch/scripted_engine.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

// Returns true if an engine that supports shortlists searches the bundle with one.
bool WantsShortlist(const Bundle& bundle, ShortlistUse use) {
  if (bundle.manifest.shortlist_file().empty() || use == ShortlistUse::kNever) return false;
  return use == ShortlistUse::kAlways || bundle.manifest.shortlist_by_default();
}

EngineInfo MakeInfo(const Bundle& bundle, const TorchEngineOptions& options, at::Device device,
                    ComputeType compute) {
  EngineInfo info;
  info.device = device.str();
  info.compute_type = ComputeTypeName(compute);
  info.compute =
      absl::StrCat(info.compute_type, " ", device.is_cpu() ? ops::InstructionSet() : info.device);
  info.threads = options.threads > 0 ? options.threads : UsableCores();
  info.rows = options.rows;
  info.encoder_cache_tokens =
      (options.encoder_cache_tokens + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
  info.vocabulary_size = bundle.manifest.vocabulary().size();
  info.source_vocabulary_size = bundle.source_vocabulary_size();
  info.special = bundle.special_tokens();
  info.max_language_tokens = LanguagePairs(bundle.manifest).max_forced_tokens();
  info.batch_invariant =
      options.batch_invariant || (device.is_cpu() && compute != ComputeType::kBfloat16);
  info.shortlist = WantsShortlist(bundle, options.shortlist) && device.is_cpu() &&
                   compute != ComputeType::kBfloat16;
  info.limits.max_beam_size = std::min(info.limits.max_beam_size, info.rows);
  info.limits.max_source_tokens = bundle.manifest.limits().max_source_tokens();
  info.limits.max_target_tokens = bundle.manifest.limits().max_target_tokens();
  return info;
}

// Returns the bundle's shortlist if it is to be used. kAuto gives way to an engine that does not
// support it.
absl::StatusOr<std::optional<Shortlist>> ReadShortlist(const Bundle& bundle, ShortlistUse use,
                                                       const ScriptedModel& model) {
  if (!WantsShortlist(bundle, use)) return std::nullopt;
  absl::Status refused;
  if (!model.packed()) {
    refused = absl::FailedPreconditionError(absl::StrCat(
        "a shortlist needs float32 or int8 on the CPU, this is ", ComputeTypeName(model.compute()),
        " on ", model.device().str(), ": set shortlist to auto or false"));
  } else if (!model.picks_best()) {
    refused = absl::FailedPreconditionError(
        "an ensemble has no shortlists: set shortlist to auto or false");
  }
  if (!refused.ok() && use == ShortlistUse::kAuto) return std::nullopt;
  RETURN_IF_ERROR(refused);
  return Shortlist::Read(bundle.path / bundle.manifest.shortlist_file(),
                         bundle.source_vocabulary_size(), bundle.manifest.vocabulary().size(),
                         bundle.special_tokens());
}

// Makes cuBLAS accumulate half-precision gemms in float32, for the whole process. By default it may
// use half precision. Batch invariance also forbids it to split a sum over blocks, by the number of
// rows; torch can forbid that to cuBLASLt alone.
void SumInFloat32(at::Device device, bool batch_invariant) {
  const bool split = !batch_invariant;
  if (device.is_cuda() && batch_invariant)
    at::globalContext().setBlasPreferredBackend(at::BlasBackend::Cublaslt);
  at::globalContext().setAllowFP16ReductionCuBLAS(false, split);
  at::globalContext().setAllowBF16ReductionCuBLAS(false, split);
}

absl::Status CheckOptions(const Bundle& bundle, const TorchEngineOptions& options) {
  constexpr int64_t kMaxEncoderCacheTokens = int64_t{1} << 28;
  const int max_source_tokens = bundle.manifest.limits().max_source_tokens();
  if (options.threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, ", it must be at least 0"));
  }
  if (options.rows < 1 || options.rows > TorchEngineOptions::kMaxRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows is ", options.rows, ", it must be between 1 and ", TorchEngineOptions::kMaxRows));
  }
  if (options.encoder_cache_tokens < max_source_tokens ||
      options.encoder_cache_tokens > kMaxEncoderCacheTokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "encoder_cache_tokens is ", options.encoder_cache_tokens, ", it must be between ",
        max_source_tokens, " (the longest source of this model) and ", kMaxEncoderCacheTokens));
  }
  return absl::OkStatus();
}

// Throws c10::Error, and GraphsFailed, after which the caller must build a new engine.
absl::Status Build(const Bundle& bundle, const TorchEngineOptions& options, at::Device device,
                   const std::string& no_graphs, std::unique_ptr<ScriptedEngine>& engine) {
  ASSIGN_OR_RETURN(ScriptedModel model,
                   ScriptedModel::Load(bundle.model_file(), device, options.compute));
  EngineInfo info = MakeInfo(bundle, options, device, model.compute());
  ASSIGN_OR_RETURN(info.grammar, bundle.target_grammar());
  model.ConvertLogitsToFloat32(info.vocabulary_size);
  ASSIGN_OR_RETURN(std::optional<Shortlist> shortlist,
                   ReadShortlist(bundle, options.shortlist, model));
  info.shortlist = shortlist.has_value();
  at::get_num_threads();  // makes torch read the default, which would replace what is set next
  at::set_num_threads(info.threads);  // for parallel regions of this thread
  const ScriptedEngineOptions engine_options = {
      .mask_eos = options.mask_eos,
      .alignment_layer = bundle.alignment_layer(),
      .one_shape = options.batch_invariant && !model.packed(),
      .time_gemms = options.time_gemms && !options.batch_invariant,
      .threads = model.packed() ? std::optional<StepThreads>(
                                      std::in_place, bundle.manifest.architecture(),
                                      model.compute() == ComputeType::kInt8, info.threads)
                                : std::nullopt};
  bool on_device = options.search == SearchPlace::kDevice ||
                   (options.search == SearchPlace::kAuto && device.is_cuda());
  if (on_device && DeviceDecoder::HistoryEntries(info) > ops::kMaxHistory) {
    const std::string why = absl::StrCat("targets of ", info.limits.max_target_tokens,
                                         " tokens are longer than a device searches");
    if (options.search == SearchPlace::kDevice)
      return absl::FailedPreconditionError(absl::StrCat(why, ": let the host search"));
    info.search = absl::StrCat("host, since ", why);
    on_device = false;
  }
  engine = std::make_unique<ScriptedEngine>(std::move(model), std::move(info), engine_options,
                                            std::move(shortlist));
  if (on_device) engine->SearchOnDevice(no_graphs);
  RETURN_IF_ERROR(engine->WarmUp());
  malloc_trim(0);  // the C library keeps the pages of weights that were converted
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngineInfo> TorchEngineInfo(const Bundle& bundle,
                                           const TorchEngineOptions& options) {
  RETURN_IF_ERROR(CheckOptions(bundle, options));
  ASSIGN_OR_RETURN(const at::Device device, OpenDevice(options.device));
  ASSIGN_OR_RETURN(const ComputeType compute, ResolveComputeType(options.compute, options.device));
  return MakeInfo(bundle, options, device, compute);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeTorchEngine(const Bundle& bundle,
                                                        const TorchEngineOptions& options) {
  RETURN_IF_ERROR(CheckOptions(bundle, options));
  ASSIGN_OR_RETURN(const at::Device device, OpenDevice(options.device));

  std::unique_ptr<ScriptedEngine> engine;
  absl::Status status =
      CatchTorchErrors(absl::StrCat("cannot load ", bundle.model_file().string()), [&] {
        SumInFloat32(device, options.batch_invariant);
        try {
          return Build(bundle, options, device, options.graphs ? "" : "they were not asked for",
                       engine);
        } catch (const GraphsFailed& failed) {
          engine.reset();  // closes the failed recording
          return Build(bundle, options, device, failed.what(), engine);
        }
      });
  if (absl::IsResourceExhausted(status)) return status;
  if (!status.ok()) {
    const absl::Status failed = absl::FailedPreconditionError(status.message());
    return IsDeviceLost(status) ? DeviceLost(failed) : failed;
  }
  return engine;
}

}  // namespace linnet::model
