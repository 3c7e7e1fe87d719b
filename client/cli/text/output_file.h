#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linnet::client {

// INVALID_ARGUMENT if `path` is one of `inputs`, also under another name: opening it for writing
// would empty it.
absl::Status CheckOutputIsNoInput(const std::string& path, const std::vector<std::string>& inputs);

// True if `path` is a regular file or does not exist yet.
bool IsFile(const std::string& path);

// INVALID_ARGUMENT if `path` has more lines than `inputs` together. Returns OK if an input is not a
// regular file, since its lines cannot be counted.
absl::Status CheckOutputIsNotLonger(const std::string& path,
                                    const std::vector<std::string>& inputs);

// The complete lines of a file; a command that was killed may have written a part of a line after
// them.
struct WholeLines {
  int64_t lines = 0;
  int64_t bytes = 0;  // of the complete lines
};
// Zero if there is no such file.
absl::StatusOr<WholeLines> CountLines(const std::string& path);

// Truncates the file to its first `kept` bytes and opens it for appending.
absl::Status OpenOutput(const std::string& path, int64_t kept, std::ofstream* file);

}  // namespace linnet::client
