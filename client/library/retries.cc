#include "client/library/retries.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "client/library/channel.h"
#include "client/library/grpc_status.h"

namespace linnet::client {
namespace {

// A payload of an error whose call was never sent: "nobody" if the operating system found no server
// at the address, "" if the connection failed in another way.
constexpr absl::string_view kUnsent = "linnet/unsent";
constexpr absl::string_view kNobody = "nobody";

double Jitter() {
  thread_local std::mt19937 random(std::random_device{}());
  return std::uniform_real_distribution<double>(0.8, 1.2)(random);
}

}  // namespace

void Retries::Succeeded() {
  reached_ = true;
  absl::MutexLock lock(&mu_);
  tokens_ = std::min(tokens_ + kTokensOfSuccess, kMaxTokens);
}

bool Retries::MayRetry() {
  absl::MutexLock lock(&mu_);
  tokens_ = std::max(tokens_ - 1, 0.0);
  return tokens_ > kMaxTokens / 2;
}

void MarkUnsent(absl::string_view message, absl::Status* status) {
  const bool unsent = absl::StrContains(message, "failed to connect to all addresses") ||
                      absl::StrContains(message, "connections to all backends failing") ||
                      absl::StrContains(message, "DNS resolution failed");
  if (!unsent || absl::StrContains(message, "backend unhealthy")) return;
  // A connection that was reset at once had somebody at the other end.
  const bool nobody = absl::StrContains(message, "Failed to connect to remote host") &&
                      !absl::StrContains(message, "Broken pipe") &&
                      !absl::StrContains(message, "reset by peer");
  status->SetPayload(kUnsent, absl::Cord(nobody ? kNobody : ""));
}

bool IsUnsent(const absl::Status& status) { return status.GetPayload(kUnsent).has_value(); }

std::optional<absl::Duration> Pushback(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("grpc-retry-pushback-ms");
  if (found == trailers.end()) return std::nullopt;
  int64_t milliseconds = 0;
  const bool number = absl::SimpleAtoi(
      absl::string_view(found->second.data(), found->second.size()), &milliseconds);
  return absl::Milliseconds(number ? milliseconds : -1);
}

Attempts::Attempts(Kind kind, const ClientOptions& options, Retries& retries,
                   absl::Duration timeout)
    : kind_(kind),
      options_(options.retry),
      balanced_(IsBalanced(options)),
      retries_(retries),
      timeout_(timeout) {
  Restart();
}

void Attempts::Restart() {
  begun_.reset();
  if (kind_ != Kind::kDocument) begun_ = Clock::now();
  failed_ = 0;
  backoff_ = options_.initial_backoff;
}

absl::Duration Attempts::left() const {
  if (kind_ == Kind::kDocument) return absl::InfiniteDuration();
  return timeout_ - absl::FromChrono(Clock::now() - *begun_);
}

std::optional<absl::Duration> Attempts::DelayAfter(const absl::Status& error,
                                                   std::optional<absl::Duration> pushback) {
  if (kind_ == Kind::kOnce || options_.max_attempts == 1) return std::nullopt;
  if (!begun_.has_value()) begun_ = Clock::now();
  const std::optional<absl::Duration> delay = Delay(error, pushback);
  const absl::Duration left = timeout_ - absl::FromChrono(Clock::now() - *begun_);
  if (!delay.has_value() || *delay >= left) return std::nullopt;
  return delay;
}

std::optional<absl::Duration> Attempts::Delay(const absl::Status& error,
                                              std::optional<absl::Duration> pushback) {
  const ErrorDetails details = DetailsOf(error);
  if (details.reason == "DEADLINE_TOO_CLOSE" && absl::IsDeadlineExceeded(error) && balanced_) {
    // The next server may have a shorter queue. Tried once, so that a deadline that no server can
    // meet does not load all of them.
    return std::exchange(asked_another_, true) ? std::nullopt : std::optional(absl::ZeroDuration());
  }
  if (!absl::IsUnavailable(error) && !absl::IsResourceExhausted(error)) return std::nullopt;
  if (const auto unsent = error.GetPayload(kUnsent)) {
    // No server was asked. One that was never there is an error at once; one that was there may be
    // restarting, and the attempt does not count.
    if (retries_.reached()) return NextBackoff();
    if (*unsent == kNobody) return std::nullopt;
  } else {
    retries_.SetReached();
  }
  ++failed_;
  const bool may_retry = retries_.MayRetry();
  if (!pushback.has_value()) pushback = details.retry_delay;
  if (failed_ >= options_.max_attempts || !may_retry ||
      (pushback.has_value() && *pushback < absl::ZeroDuration())) {
    return std::nullopt;
  }
  return pushback.has_value() ? *pushback : NextBackoff();
}

absl::Duration Attempts::NextBackoff() {
  const absl::Duration delay = backoff_ * Jitter();
  backoff_ = std::min(2 * backoff_, options_.max_backoff);
  return delay;
}

}  // namespace linnet::client
