#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "server/metrics.h"
#include "server/mutex.h"

namespace linnet::server {

struct AdmissionLimits {
  // Work in the house: the sum over all segments of (source + most target tokens) x beam size.
  int64_t max_tokens = 1'000'000;
  // Bytes of the requests in the house, known before any work is done.
  int64_t max_bytes = int64_t{64} << 20;
};

class Permit;

// The bound on what is in the house, waiting or worked on. Nothing in the server waits without a
// permit, so that no queue needs a limit of its own. Thread-safe; outlives its permits.
class Admission {
 public:
  Admission(const AdmissionLimits& limits, Metrics& metrics);

  // A permit for a request of that many bytes; RESOURCE_EXHAUSTED if the house is full.
  absl::StatusOr<Permit> Enter(int64_t bytes);

  const AdmissionLimits& limits() const { return limits_; }
  int64_t tokens() const;
  int64_t bytes() const;

 private:
  friend class Permit;
  absl::Status Charge(int64_t tokens);
  void Leave(int64_t bytes, int64_t tokens);

  const AdmissionLimits limits_;
  Metrics& metrics_;
  mutable Mutex mu_;
  int64_t tokens_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// A place in the house; what it holds goes back when it dies, on every path.
class Permit {
 public:
  Permit(Permit&& other) noexcept;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit();

  // Adds work once it is known. RESOURCE_EXHAUSTED if the house has no room for it now,
  // INVALID_ARGUMENT if it never will; the permit then holds what it held before.
  absl::Status Charge(int64_t tokens);

 private:
  friend class Admission;
  Permit(Admission& admission, int64_t bytes) : admission_(&admission), bytes_(bytes) {}
  void GiveBack();

  Admission* admission_;
  int64_t bytes_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace linnet::server
