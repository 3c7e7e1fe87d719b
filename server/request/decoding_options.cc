#include "server/request/decoding_options.h"

#include <algorithm>
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

ResolvedOptions::ResolvedOptions(const model::Bundle& bundle, const DecodingOptions& asked)
    : bundle_(&bundle),
      options_(model::ApplyOverrides(
          bundle.default_options(bundle.manifest.limits().max_source_tokens()), asked,
          bundle.manifest.limits().max_target_tokens())),
      min_is_set_(asked.has_min_target_tokens()),
      max_is_set_(asked.has_max_target_tokens()) {}

model::SearchOptions ResolvedOptions::ForSource(int source_tokens) const {
  model::SearchOptions options = options_;
  const int max = bundle_->default_max_target_tokens(source_tokens);
  if (!min_is_set_) options.min_target_tokens = std::min(options.min_target_tokens, max);
  if (max_is_set_) return options;
  options.max_target_tokens = max;
  if (min_is_set_) {
    options.max_target_tokens = std::max(
        max, std::min(options.min_target_tokens, bundle_->manifest.limits().max_target_tokens()));
  }
  return options;
}

absl::StatusOr<ResolvedOptions> ResolveOptions(const DecodingOptions& asked,
                                               const ServedModel& model,
                                               const std::map<std::string, std::string>& paths) {
  const ResolvedOptions resolved(model.bundle, asked);
  const std::optional<model::BadOption> bad =
      model::FindBadOption(resolved.for_longest(), model.scheduler->engine_info().limits);
  if (!bad.has_value()) return resolved;
  std::string name = bad->option;
  std::string message = bad->message;
  if (!IsSet(asked, name)) {
    // The only unset option that may be bad is the beam: when sampling it is n_best, else it may be
    // wider than the steps of this server.
    if (name != "beam_size") return resolved;
    if (resolved.sampling() && asked.has_n_best()) {
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

}  // namespace linnet::server
