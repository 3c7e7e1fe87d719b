#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace linnet::server {

// Why a request was refused before any decoding.
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

// What Admission reports: the metrics, without a dependency on them. Calls come from any thread,
// under the lock of Admission, so they must be quick and must not call it back.
class AdmissionObserver {
 public:
  virtual ~AdmissionObserver() = default;
  virtual void SetAdmissionLimits(int64_t tokens, int64_t bytes) = 0;
  // What is admitted at the moment, and the time in which it is expected to be done.
  virtual void SetAdmitted(int64_t tokens, int64_t bytes, absl::Duration drain) = 0;
  virtual void Rejected(RejectReason reason) = 0;
  // How long a call is expected to take, whether it was admitted or not.
  virtual void Estimated(absl::Duration estimate) = 0;
  // What the estimates of a model are multiplied by.
  virtual void SetSafetyFactor(const std::string& model, bool waits, double factor) = 0;
};

}  // namespace linnet::server
