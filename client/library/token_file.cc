#include "client/library/token_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/library/utf8.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

constexpr int64_t kMaxTokenFileBytes = 1 << 20;

// False if the file was changed or replaced, also by a link.
bool Same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path) {
  auto file = std::unique_ptr<TokenFile>(new TokenFile(path));
  absl::MutexLock lock(&file->mu_);
  RETURN_IF_ERROR(file->Read());
  return file;
}

absl::Status TokenFile::Read() {
  struct stat now = {};
  if (stat(path_.c_str(), &now) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the token file \"", path_, "\": ", std::strerror(errno)));
  }
  const absl::StatusOr<std::string> text = ReadFile(path_, kMaxTokenFileBytes);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the token file: ", text.status().message()));
  }
  absl::string_view token = *text;
  absl::ConsumePrefix(&token, kByteOrderMark);
  token = absl::StripAsciiWhitespace(token);
  // The content is a secret: no byte of it may appear in a message.
  if (token.empty() || !std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the token file \"", path_, "\" holds no token: one word of visible ASCII characters"));
  }
  seen_ = now;
  token_ = std::string(token);
  return absl::OkStatus();
}

std::string TokenFile::Token() {
  absl::MutexLock lock(&mu_);
  struct stat now = {};
  // The former token stays valid while a new one is being written.
  if (stat(path_.c_str(), &now) == 0 && !Same(now, seen_)) Read().IgnoreError();
  return token_;
}

}  // namespace linnet::client
