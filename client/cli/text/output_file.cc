#include "client/cli/text/output_file.h"

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

absl::Status CheckOutputIsNoInput(const std::string& path, const std::vector<std::string>& inputs) {
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

bool IsFile(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

absl::Status CheckOutputIsNotLonger(const std::string& path,
                                    const std::vector<std::string>& inputs) {
  int64_t input_lines = 0;
  for (const std::string& input : inputs) {
    struct stat found = {};
    if (input == "-" || stat(input.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
      return absl::OkStatus();
    }
    const absl::StatusOr<WholeLines> counted = CountLines(input);
    if (!counted.ok()) return absl::OkStatus();  // reading the input reports the error
    input_lines += counted->lines + (counted->bytes < found.st_size ? 1 : 0);
  }
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return absl::OkStatus();
  const absl::StatusOr<WholeLines> lines = CountLines(path);
  if (!lines.ok() || lines->lines <= input_lines) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" has ", lines->lines,
                                                 " lines and the input only ", input_lines,
                                                 ": --force overwrites it all the same"));
}

absl::StatusOr<WholeLines> CountLines(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return WholeLines();
    return Refused("resume", path);
  }
  if (!S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot resume \"", path, "\": it is not a file whose lines can be counted"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Refused("resume", path);
  WholeLines whole;
  int64_t read = 0;
  std::string chunk(1 << 20, '\0');
  while (file.read(chunk.data(), chunk.size()), file.gcount() > 0) {
    const auto end = chunk.begin() + file.gcount();
    whole.lines += std::count(chunk.begin(), end, '\n');
    const auto last = std::find(std::make_reverse_iterator(end), chunk.rend(), '\n');
    if (last != chunk.rend()) whole.bytes = read + (last.base() - chunk.begin());
    read += file.gcount();
  }
  if (file.bad()) return Refused("read", path);
  return whole;
}

absl::Status OpenOutput(const std::string& path, int64_t kept, std::ofstream* file) {
  struct stat found = {};
  const bool longer = stat(path.c_str(), &found) == 0 && found.st_size > kept;
  if (kept > 0 && longer && truncate(path.c_str(), kept) != 0) return Refused("resume", path);
  file->open(path, std::ios::binary | (kept > 0 ? std::ios::app : std::ios::trunc));
  return *file ? absl::OkStatus() : Refused("write", path);
}

}  // namespace linnet::client
