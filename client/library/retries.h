// Decides whether, and after which delay, a call that failed is made again.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/library/client.h"
#include "grpcpp/client_context.h"

namespace linnet::client {

// The state of retries that the calls of a connection share. Thread-safe.
class Retries {
 public:
  bool reached() const { return reached_; }
  void SetReached() { reached_ = true; }  // the server has answered, or there was a connection
  void Succeeded();
  // Counts a failure. False while most calls fail, so that retries do not add to the load.
  bool MayRetry();

 private:
  // As in deploy/balancers/client_retries.json.
  static constexpr double kMaxTokens = 100, kTokensOfSuccess = 0.1;

  std::atomic<bool> reached_ = false;
  absl::Mutex mu_;
  double tokens_ ABSL_GUARDED_BY(mu_) = kMaxTokens;
};

// Marks an error of gRPC, whose message is `message`, if there was no connection to send the call.
void MarkUnsent(absl::string_view message, absl::Status* status);
bool IsUnsent(const absl::Status& status);

// The delay that the server asks for (grpc-retry-pushback-ms); negative if it forbids a retry.
std::optional<absl::Duration> Pushback(const grpc::ClientContext& context);

// The attempts of one call. gRPC's own retries are not used: they lose a retry without a delay, and
// hide a refusal if the server's delay is beyond the deadline. INTERNAL and CANCELLED are not
// retried: a call that made the engine of one server stall or crash would go on to the next one.
// Not thread-safe.
class Attempts {
 public:
  enum class Kind {
    kCall,      // until the timeout, which begins at construction
    kDocument,  // without a deadline; the timeout begins at the first error after a result
    kOnce,
  };

  Attempts(Kind kind, const ClientOptions& options, Retries& retries, absl::Duration timeout);

  // Until the deadline; infinite for a document.
  absl::Duration left() const;
  // Begins again: the timeout after the wait for a server, or all of a document after a result.
  void Restart();
  // Returns the delay before the next attempt; nothing if there is none before the deadline.
  std::optional<absl::Duration> DelayAfter(const absl::Status& error,
                                           std::optional<absl::Duration> pushback);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<absl::Duration> Delay(const absl::Status& error,
                                      std::optional<absl::Duration> pushback);
  absl::Duration NextBackoff();

  const Kind kind_;
  const RetryOptions options_;
  const bool balanced_;
  Retries& retries_;
  const absl::Duration timeout_;
  std::optional<Clock::time_point> begun_;
  int failed_ = 0;
  absl::Duration backoff_;
  bool asked_another_ = false;
};

}  // namespace linnet::client
