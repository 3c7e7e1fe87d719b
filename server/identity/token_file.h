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

// A token table read from a file that may change while the server runs. Thread-safe.
class TokenFile {
 public:
  // `metrics` must outlive it.
  static absl::StatusOr<std::shared_ptr<TokenFile>> Open(const std::string& path, Metrics& metrics);

  // Reads the whole file again; its time is not checked, because two writes may have the same time
  // and the file is small. If the file is missing or has a wrong line, the tokens stay as they are,
  // and the next call tries again. Each wrong file and each cause of failure is logged once; every
  // failure is counted.
  void Refresh();

  // The table that was read last. A table that is replaced lives as long as a caller holds it.
  std::shared_ptr<const TokenTable> table() const;

 private:
  TokenFile(std::string path, Metrics& metrics) : path_(std::move(path)), metrics_(metrics) {}
  absl::Status Read();

  const std::string path_;
  Metrics& metrics_;
  mutable Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);  // contents of the file behind table_
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mu_);
  std::string failure_ ABSL_GUARDED_BY(mu_);     // error of the last Refresh, or empty
  std::string wrong_text_ ABSL_GUARDED_BY(mu_);  // contents that the last Read could not parse
};

}  // namespace linnet::server
