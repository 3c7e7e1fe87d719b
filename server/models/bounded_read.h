#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

namespace linnet::server {

// Marks a bundle as being read. Thread-safe.
bool BeginReading(const std::string& bundle);  // false if it is being read already
void EndReading(const std::string& bundle);

// Runs `read` for the files of a bundle and returns its result, an absl::Status or a StatusOr.
//
// DEADLINE_EXCEEDED if that takes longer than `limit`, as on a network file system that hangs.
// Reading cannot be interrupted, so the thread that reads is left behind; `read` owns what it uses.
// Until that thread ends, the bundle is not read again (UNAVAILABLE), so that there is at most one
// such thread for each bundle.
template <typename Result>
Result ReadWithin(absl::Duration limit, const std::string& bundle, std::function<Result()> read) {
  if (!BeginReading(bundle)) {
    return absl::UnavailableError(absl::StrCat(
        "bundle ", bundle, " is still being read by an earlier load: its file system may hang"));
  }
  struct Shared {
    Mutex mu;
    CondVar changed;
    std::optional<Result> result ABSL_GUARDED_BY(mu);
  };
  const auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, bundle, read = std::move(read)] {
      std::optional<Result> result;
      try {
        result = read();
      } catch (...) {
        result = ErrorOfException();
      }
      EndReading(bundle);
      MutexLock lock(shared->mu);
      shared->result = std::move(result);
      shared->changed.NotifyAll();
    }).detach();
  } catch (...) {  // no thread can be started
    EndReading(bundle);
    throw;
  }
  const MonotonicTime deadline = After(MonotonicNow(), limit);
  MutexLock lock(shared->mu);
  while (!shared->result.has_value() && shared->changed.WaitUntil(shared->mu, deadline)) {
  }
  if (shared->result.has_value()) return *std::move(shared->result);
  return absl::DeadlineExceededError(
      absl::StrCat("bundle ", bundle, " was not read within ", absl::FormatDuration(limit),
                   ", five times engine-stall-timeout: its file system may hang"));
}

}  // namespace linnet::server
