#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/search/search_options.h"
#include "server/models/served_model.h"

namespace linnet::server {

// The model's defaults for a source of that many tokens (eos counted), with the request's options
// on top. Where the request sets only one end of the bounds on target tokens, a default on the
// other side gives way to it.
model::SearchOptions MergeOptions(const model::Bundle& bundle,
                                  const linnet::v1::DecodingOptions& options, int source_tokens);

// BAD_OPTION at the first option that the model's engine cannot follow. `paths` says what the
// request calls an option, by its number, where that is not options.<name>.
absl::Status CheckDecodingOptions(const linnet::v1::DecodingOptions& options,
                                  const ServedModel& model,
                                  const std::map<int, std::string>& paths);

}  // namespace linnet::server
