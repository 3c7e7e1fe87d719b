#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// 64 lower-case hexadecimal digits, computed by libcrypto. Returns FailedPreconditionError if the
// file cannot be read to its end.
absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& file);
absl::StatusOr<std::string> Sha256OfBytes(absl::string_view bytes);

}  // namespace linnet::model
