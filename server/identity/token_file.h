#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/identity/token_table.h"
#include "server/metrics/metrics.h"

namespace linnet::server {

// The tokens of a file that changes while the server runs. Thread-safe.
class TokenFile {
 public:
  // `metrics` outlives it.
  static absl::StatusOr<std::shared_ptr<TokenFile>> Open(const std::string& path, Metrics& metrics);

  // Reads the file again, whole: two writes may have the same time, and the file is small. What
  // cannot be read (it is gone, or one line is wrong) leaves the tokens as they are and is read
  // again in the next call. Each cause of a failure is logged once, every failure is counted.
  void Refresh();

  // As they were read last; a table that is replaced lives as long as somebody reads it.
  std::shared_ptr<const TokenTable> table() const;

 private:
  TokenFile(std::string path, Metrics& metrics) : path_(std::move(path)), metrics_(metrics) {}
  absl::Status Read();

  const std::string path_;
  Metrics& metrics_;
  mutable Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);  // of the table
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mu_);
  std::string failure_ ABSL_GUARDED_BY(mu_);  // of the last Refresh, empty if there was none
};

}  // namespace linnet::server
