#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace linnet::server {

// The reason why a request was rejected before any decoding.
enum class RejectReason {
  kInvalid,
  kNotFound,
  kTokens,
  kBytes,
  kShare,
  kDeadline,       // the server is too busy for it
  kShortDeadline,  // no server could meet it
  kEngine,
  kDraining
};
inline constexpr std::array kRejectReasons = {
    RejectReason::kInvalid,       RejectReason::kNotFound, RejectReason::kTokens,
    RejectReason::kBytes,         RejectReason::kShare,    RejectReason::kDeadline,
    RejectReason::kShortDeadline, RejectReason::kEngine,   RejectReason::kDraining};

// Receives the events and gauges of Admission; server/metrics implements it, so that Admission does
// not depend on the metrics. Called from any thread under the lock of Admission: an implementation
// must return quickly and must not call Admission.
class AdmissionObserver {
 public:
  virtual ~AdmissionObserver() = default;
  virtual void SetAdmissionLimits(int64_t tokens, int64_t bytes) = 0;
  // The tokens and bytes in flight, and the time in which that work is expected to finish.
  virtual void SetAdmitted(int64_t tokens, int64_t bytes, absl::Duration drain) = 0;
  virtual void Rejected(RejectReason reason) = 0;
  // The latency estimate of a call, admitted or not.
  virtual void Estimated(absl::Duration estimate) = 0;
  // `waits`: the factor for calls that have to wait for rows (Estimate::waits).
  virtual void SetSafetyFactor(const std::string& model, bool waits, double factor) = 0;
};

}  // namespace linnet::server
