#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linnet::client {

// INVALID_ARGUMENT if `path` is one of `inputs`, by whatever name: opening it would empty it.
absl::Status CheckIsNoInput(const std::string& path, const std::vector<std::string>& inputs);

// False for a device, a pipe, a folder; a file need not be there yet.
bool IsFile(const std::string& path);

// INVALID_ARGUMENT if `path` has more lines than `inputs` together. Inputs that are no files, such
// as standard input, have no number of lines.
absl::Status CheckIsNoLonger(const std::string& path, const std::vector<std::string>& inputs);

// The whole lines of a file that a command wrote line by line, until it was ended at any point.
struct WholeLines {
  int64_t lines = 0;
  int64_t bytes = 0;  // behind them stands the start of a line, if anything
};
// None if there is no such file.
absl::StatusOr<WholeLines> CountLines(const std::string& path);

// Opens it for writing behind its first `kept` bytes; what stands there is cut off.
absl::Status OpenOutput(const std::string& path, int64_t kept, std::ofstream* file);

}  // namespace linnet::client
