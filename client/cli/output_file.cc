#include "client/cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace linnet::client {
namespace {

absl::Status Refused(const std::string& what, const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", what, " \"", path, "\": ", std::strerror(errno)));
}

}  // namespace

absl::Status CheckIsNoInput(const std::string& path, const std::vector<std::string>& inputs) {
  struct stat output = {}, input = {};
  if (stat(path.c_str(), &output) != 0 || !S_ISREG(output.st_mode)) return absl::OkStatus();
  for (const std::string& name : inputs) {
    const int found = name == "-" ? fstat(STDIN_FILENO, &input) : stat(name.c_str(), &input);
    if (found != 0 || input.st_dev != output.st_dev || input.st_ino != output.st_ino) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is input and output: writing would empty it first"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MendLines(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return 0;
    return Refused("resume", path);
  }
  if (!S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot resume \"", path, "\": it is not a file whose lines can be counted"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Refused("resume", path);
  int64_t lines = 0, read = 0, whole = 0;
  std::string chunk(1 << 20, '\0');
  while (file.read(chunk.data(), chunk.size()), file.gcount() > 0) {
    const auto end = chunk.begin() + file.gcount();
    lines += std::count(chunk.begin(), end, '\n');
    const auto last = std::find(std::make_reverse_iterator(end), chunk.rend(), '\n');
    if (last != chunk.rend()) whole = read + (last.base() - chunk.begin());
    read += file.gcount();
  }
  if (whole < read && truncate(path.c_str(), whole) != 0) return Refused("resume", path);
  return lines;
}

absl::StatusOr<std::ofstream> OpenOutput(const std::string& path, bool append) {
  std::ofstream file(path, std::ios::binary | (append ? std::ios::app : std::ios::trunc));
  if (!file) return Refused("write", path);
  return file;
}

}  // namespace linnet::client
