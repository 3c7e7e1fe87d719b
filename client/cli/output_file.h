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

// Makes a file that a command wrote line by line, until it was ended at any point, one of whole
// lines: the start of a line at its end is cut off. Their number; 0 if there is no such file.
absl::StatusOr<int64_t> MendLines(const std::string& path);

// Opens it for writing, behind what it holds or, without `append`, empty.
absl::StatusOr<std::ofstream> OpenOutput(const std::string& path, bool append);

}  // namespace linnet::client
