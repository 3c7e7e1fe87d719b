#include "server/request/decoding_options.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

using linnet::v1::DecodingOptions;

bool IsSet(const DecodingOptions& options, const std::string& name) {
  const auto* field = DecodingOptions::descriptor()->FindFieldByName(name);
  return field != nullptr && options.GetReflection()->HasField(options, field);
}

}  // namespace

absl::Status CheckDecodingOptions(const DecodingOptions& options, const ServedModel& model,
                                  const std::map<std::string, std::string>& paths) {
  const model::SearchOptions merged =
      MergeOptions(model.bundle, options, model.bundle.manifest.limits().max_source_tokens());
  const std::optional<model::BadOption> bad =
      model::FindBadOption(merged, model.scheduler->engine_info().limits);
  if (!bad.has_value()) return absl::OkStatus();
  std::string name = bad->option;
  std::string message = bad->message;
  if (!IsSet(options, name)) {
    // The only unset option that may be bad is the beam: when sampling it is n_best, else it may be
    // wider than the steps of this server.
    if (name != "beam_size") return absl::OkStatus();
    if (merged.sampling() && options.has_n_best()) {
      name = "n_best";
      message = absl::StrCat(bad->option, " ", bad->message);
    } else {
      absl::StrAppend(&message,
                      ": it is the model's default and beyond max-batch-rows, set a smaller one");
    }
  }
  const auto path = paths.find(name);
  return BadField(path == paths.end() ? absl::StrCat("options.", name) : path->second,
                  Reason::kBadOption, message);
}

model::SearchOptions MergeOptions(const model::Bundle& bundle, const DecodingOptions& options,
                                  int source_tokens) {
  return model::ApplyOverrides(bundle.default_options(source_tokens), options,
                               bundle.manifest.limits().max_target_tokens());
}

}  // namespace linnet::server
