#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/search/search_options.h"
#include "server/models/served_model.h"

namespace linnet::server {

// The options of all searches of a call: the model's defaults, overridden by those of the request.
// Only the bounds on target tokens depend on the source.
class ResolvedOptions {
 public:
  ResolvedOptions() = default;
  // The bundle must outlive this object.
  ResolvedOptions(const model::Bundle& bundle, const linnet::v1::DecodingOptions& asked);

  bool sampling() const { return options_.sampling(); }
  // The options for a source of that many tokens (eos counted). If the request sets only one of the
  // bounds on target tokens, the default of the other bound is adjusted to it.
  model::SearchOptions ForSource(int source_tokens) const;
  // The options for the longest source that the model reads.
  const model::SearchOptions& for_longest() const { return options_; }

 private:
  const model::Bundle* bundle_ = nullptr;
  model::SearchOptions options_;
  bool min_is_set_ = false;  // by the request
  bool max_is_set_ = false;
};

// BAD_OPTION for the first option of the request that the model's engine does not support. `paths`
// maps names of options to the request's own field paths where these are not options.<name>.
absl::StatusOr<ResolvedOptions> ResolveOptions(const linnet::v1::DecodingOptions& asked,
                                               const ServedModel& model,
                                               const std::map<std::string, std::string>& paths);

}  // namespace linnet::server
