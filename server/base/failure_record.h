#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::server {

// Adds the request ids of the calls that were running when an engine failed to a file that outlives
// the process. Returns the ids that were in an earlier failure, with the number of their failures:
// one of them may be the cause.
//
// The file has one line "COUNT ID" per id, the latest last, at most 1000 lines. Lines that cannot
// be parsed are dropped. The file is replaced atomically, and FILE.lock is locked meanwhile:
// servers may share the file. UNAVAILABLE if it cannot be written, or another process keeps the
// lock for a second.
absl::StatusOr<std::map<std::string, int>> RecordFailure(
    const std::filesystem::path& file, const std::vector<std::string>& request_ids);

}  // namespace linnet::server
