#include "server/text/decoding_options.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

using linnet::v1::DecodingOptions;

model::SearchOverrides OverridesOf(const DecodingOptions& options) {
  model::SearchOverrides overrides;
  if (options.has_beam_size()) overrides.beam_size = options.beam_size();
  if (options.has_length_penalty()) overrides.length_penalty = options.length_penalty();
  if (options.has_min_target_tokens()) overrides.min_target_tokens = options.min_target_tokens();
  if (options.has_max_target_tokens()) overrides.max_target_tokens = options.max_target_tokens();
  if (options.has_unknown_penalty()) overrides.unknown_penalty = options.unknown_penalty();
  if (options.has_no_repeat_ngram_size())
    overrides.no_repeat_ngram_size = options.no_repeat_ngram_size();
  if (options.has_n_best()) overrides.n_best = options.n_best();
  if (options.has_normalize_scores()) overrides.normalize_scores = options.normalize_scores();
  if (options.has_temperature()) overrides.temperature = options.temperature();
  if (options.has_top_k()) overrides.top_k = options.top_k();
  if (options.has_top_p()) overrides.top_p = options.top_p();
  if (options.has_seed()) overrides.seed = options.seed();
  return overrides;
}

bool IsSet(const DecodingOptions& options, const std::string& name) {
  const auto* field = DecodingOptions::descriptor()->FindFieldByName(name);
  return field != nullptr && options.GetReflection()->HasField(options, field);
}

}  // namespace

absl::Status CheckDecodingOptions(const DecodingOptions& options, const ServedModel& model,
                                  const std::map<std::string, std::string>& paths) {
  const std::optional<model::BadOption> bad = model::FindBadOption(
      MergeOptions(model.bundle, options, model.bundle.manifest.limits().max_source_tokens()),
      model.scheduler->engine_info().limits);
  if (!bad.has_value()) return absl::OkStatus();
  std::string name = bad->option;
  std::string message = bad->message;
  if (!IsSet(options, name)) {
    // The only unset option that depends on the request is the beam: when sampling it is n_best.
    if (name != "beam_size" || !options.has_n_best()) return absl::OkStatus();
    name = "n_best";
    message = absl::StrCat(bad->option, " ", bad->message);
  }
  const auto path = paths.find(name);
  return BadField(path == paths.end() ? absl::StrCat("options.", name) : path->second,
                  Reason::kBadOption, message);
}

model::SearchOptions MergeOptions(const model::Bundle& bundle, const DecodingOptions& options,
                                  int source_tokens) {
  return model::ApplyOverrides(bundle.default_options(source_tokens), OverridesOf(options),
                               bundle.manifest.limits().max_target_tokens());
}

}  // namespace linnet::server
