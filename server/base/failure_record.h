#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::server {

// Adds the request ids of the calls that an engine was working on when it failed to a file that
// outlives the process. Returns those that were in such a failure before, each with how often it
// was: one of them may be the cause. The file holds a line for each id, "COUNT ID", the latest
// last, and no more than a thousand of them; what cannot be read in it is left out. It is replaced
// in one step.
absl::StatusOr<std::map<std::string, int>> RecordFailure(
    const std::filesystem::path& file, const std::vector<std::string>& request_ids);

}  // namespace linnet::server
