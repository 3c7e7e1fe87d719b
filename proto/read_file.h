// Reading a whole file, for the whole tree (see status_macros.h for why it is here).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/status_macros.h"

namespace linnet {

// Limits of the small files that people write: settings, tokens, keys, certificates.
inline constexpr int64_t kMaxOperatorFileBytes = 16 << 20;

// Reading a file must end within this time. Only a failing disk or network file system is slower.
inline constexpr int kMaxReadSeconds = 10;

// A regular file, or one that a symbolic link leads to, open for reading. FIFOs and devices are
// refused without waiting, so that no file can stop or fill the process.
class RegularFile {
 public:
  // NotFoundError "cannot read FILE: REASON".
  static absl::StatusOr<RegularFile> Open(const std::filesystem::path& path) {
    // O_NONBLOCK: opening a FIFO does not wait for a writer.
    RegularFile file(path.string(), open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (file.descriptor_ < 0 || fstat(file.descriptor_, &status) != 0)
      return file.Unreadable(std::strerror(errno));
    const mode_t mode = status.st_mode;
    if (S_ISDIR(mode)) return file.Unreadable(std::strerror(EISDIR));
    if (!S_ISREG(mode)) {
      return file.Unreadable(S_ISFIFO(mode)   ? "it is a FIFO, not a regular file"
                             : S_ISSOCK(mode) ? "it is a socket, not a regular file"
                                              : "it is a device, not a regular file");
    }
    file.size_ = status.st_size;
    return file;
  }
  RegularFile(RegularFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // Bytes when it was opened; 0 for the files of /proc, which have no size.
  int64_t size() const { return size_; }
  // Reads the next bytes, at most `max`; 0 at the end.
  absl::StatusOr<size_t> Read(char* bytes, size_t max) {
    for (;;) {
      const ssize_t count = read(descriptor_, bytes, max);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) return Unreadable(std::strerror(errno));
    }
  }

 private:
  RegularFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  absl::Status Unreadable(absl::string_view why) const {
    return absl::NotFoundError(absl::StrCat("cannot read ", path_, ": ", why));
  }

  std::string path_;
  int descriptor_;
  int64_t size_ = 0;
};

// Returns the bytes of a RegularFile, with its errors; InvalidArgumentError if it has more than
// `max_bytes`; DeadlineExceededError after kMaxReadSeconds.
inline absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(RegularFile file, RegularFile::Open(path));
  const auto too_large = [&](absl::string_view size) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " has ", size, " bytes, at most ", max_bytes, " are read"));
  };
  if (file.size() > max_bytes) return too_large(absl::StrCat(file.size()));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kMaxReadSeconds);
  std::string bytes;
  for (size_t size = 0;;) {
    // No buffer on the stack: the threads of the metrics page have 100 KB in all.
    constexpr size_t kPart = 1 << 14;
    bytes.resize(size + kPart);
    ASSIGN_OR_RETURN(const size_t count, file.Read(&bytes[size], kPart));
    size += count;
    if (count == 0) {
      bytes.resize(size);
      return bytes;
    }
    if (static_cast<int64_t>(size) > max_bytes)  // it grows, or has no size
      return too_large(absl::StrCat("more than ", max_bytes));
    if (std::chrono::steady_clock::now() > end) {
      return absl::DeadlineExceededError(absl::StrCat("cannot read ", path.string(), ": only ",
                                                      size, " bytes came within ", kMaxReadSeconds,
                                                      " s"));
    }
  }
}

}  // namespace linnet
