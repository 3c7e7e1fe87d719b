#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/search/search_options.h"
#include "server/models/served_model.h"

namespace linnet::server {

// Returns the model's default options for a source of that many tokens (eos counted), overridden by
// the request's. If the request sets only one of the bounds on target tokens, the default of the
// other bound is adjusted to it.
model::SearchOptions MergeOptions(const model::Bundle& bundle,
                                  const linnet::v1::DecodingOptions& options, int source_tokens);

// BAD_OPTION for the first option of the request that the model's engine does not support. `paths`
// maps names of options to the request's own field paths where these are not options.<name>.
absl::Status CheckDecodingOptions(const linnet::v1::DecodingOptions& options,
                                  const ServedModel& model,
                                  const std::map<std::string, std::string>& paths);

}  // namespace linnet::server
