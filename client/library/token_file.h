#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace linnet::client {

// A bearer token in a file. The file is checked for changes before each call, because tokens expire
// and are replaced. Thread-safe.
class TokenFile {
 public:
  // INVALID_ARGUMENT if the file cannot be read or does not hold a token: visible ASCII characters,
  // perhaps with white space around them.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path);

  // The token that the file holds now, or, if it holds none, the last one that it held.
  std::string Token();

 private:
  explicit TokenFile(const std::string& path) : path_(path) {}
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string path_;
  absl::Mutex mu_;
  struct stat seen_ ABSL_GUARDED_BY(mu_) = {};
  std::string token_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::client
