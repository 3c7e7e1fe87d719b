// Reading a whole file, for the whole tree (see status_macros.h for why it is here).
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace linnet {

// The bytes of the file, or NotFoundError "cannot read FILE: REASON", also if it is a directory or
// reading fails half way. (Iterators over the buffer of a stream would throw then.)
inline absl::StatusOr<std::string> ReadFile(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string bytes;
  size_t size = 0;
  do {  // no buffer on the stack: the threads of the metrics page have 100 KB in all
    constexpr size_t kPart = 1 << 14;
    bytes.resize(size + kPart);
    stream.read(&bytes[size], kPart);
    size += stream.gcount();
  } while (stream);
  bytes.resize(size);
  if (!stream.is_open() || stream.bad()) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", file.string(), ": ", std::strerror(errno)));
  }
  return bytes;
}

}  // namespace linnet
