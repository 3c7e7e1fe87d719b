#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/caller.h"
#include "server/base/mutex.h"
#include "server/schedule/admission_observer.h"
#include "server/schedule/latency_estimator.h"
#include "server/schedule/probe_policy.h"
#include "server/schedule/quota.h"
#include "server/schedule/step_report.h"

namespace linnet::server {

struct AdmissionLimits {
  // Work in the house: the sum over all segments of (source + most target tokens) x beam size.
  int64_t max_tokens = 1'000'000;
  // Bytes of memory that calls hold, from the bytes of a request to the last of its reply.
  int64_t max_bytes = int64_t{256} << 20;
};

// What a call comes to once it is tokenised.
struct CallWork {
  std::string model;
  CallSize size = {};
  absl::Duration answer = absl::ZeroDuration();  // to put the answer together, once it is decoded
  absl::Time deadline = absl::InfiniteFuture();
};

class Permit;

// The bound on what is in the house, waiting or worked on. Nothing in the server waits without a
// permit, so that no queue needs a limit of its own.
//
// A call is admitted while there is room, its client holds no more than its share (Quota), and it
// is expected to end before its deadline (LatencyEstimator), with a safety factor that is learned
// from how long the calls before took. An idle engine takes a share of the others as probes
// (ProbePolicy). Thread-safe; outlives its permits.
class Admission {
 public:
  // `seed` of the retry delays, which differ from call to call.
  Admission(const AdmissionLimits& limits, AdmissionObserver& observer,
            uint32_t seed = std::random_device{}());

  // What a call holds beside all that is counted: its objects here and in gRPC, and its headers.
  static constexpr int64_t kBytesPerCall = 16384;

  // A permit for so many bytes beside kBytesPerCall; RESOURCE_EXHAUSTED if there is no memory for
  // them or the client has its share.
  absl::StatusOr<Permit> Enter(const Caller& caller, int64_t bytes);
  // A turn of the model's scheduler, from which the estimates come.
  void StepMade(const std::string& model, const StepReport& report, absl::Duration cycle);

  const AdmissionLimits& limits() const { return limits_; }
  int64_t tokens() const;
  int64_t bytes() const;

 private:
  friend class Permit;
  // Of a caller whose call holds `held` already.
  absl::Status TakeBytes(const Caller& caller, int64_t bytes, int64_t held);
  // Where the memory is in use already. Negative: gives back.
  void ChangeBytes(const Caller& caller, int64_t bytes);
  absl::StatusOr<Estimate> Charge(const Caller& caller, const CallWork& work, absl::Time now);
  void Ended(const std::string& model, const Estimate& estimate, absl::Duration actual,
             absl::Time now, bool finished);
  // OK, or why the call cannot be expected to end in time.
  absl::Status CheckDeadline(const CallWork& work, const Estimate& expected, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBackTokens(const Caller& caller, const std::string& model, int64_t tokens, double rows);
  // When to come back to a house that has to finish so much before: some sooner, some later, so
  // that they do not all come at once.
  absl::Duration RetryDelay(absl::Duration drain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration TimeToDrain() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const AdmissionLimits limits_;
  AdmissionObserver& observer_;
  mutable Mutex mu_;
  Quota tokens_ ABSL_GUARDED_BY(mu_);
  Quota bytes_ ABSL_GUARDED_BY(mu_);
  struct Model {
    LatencyEstimator estimator;
    ProbePolicy probes;
  };
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mu_);
  std::minstd_rand random_ ABSL_GUARDED_BY(mu_);
};

// What a call holds, in bytes and in work; it goes back when the permit dies, on every path. Bytes
// and work may be changed by different threads, each by one at a time.
class Permit {
 public:
  Permit(Permit&& other) noexcept;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit();

  int64_t bytes() const { return bytes_; }
  // Holds so much more, before it is allocated. RESOURCE_EXHAUSTED if there is no room for it now,
  // INVALID_ARGUMENT if it never fits; the permit then holds what it held before.
  absl::Status Hold(int64_t bytes);
  // Holds so much from now on; for memory that is given back, or in use whatever is said.
  void SetBytes(int64_t bytes);

  // What a call says of its urgency, before it is charged.
  void SetPriority(Priority priority) { caller_.priority = priority; }
  // Adds the work once it is known, once. RESOURCE_EXHAUSTED if there is no room for it now,
  // DEADLINE_EXCEEDED if it could not be done in time, INVALID_ARGUMENT if it never fits; the
  // permit then holds what it held before.
  absl::Status Charge(const CallWork& work, absl::Time now);
  // A part of the work has ended.
  void GiveBack(int64_t tokens);
  // All of it has; the bytes are held on.
  void GiveBackWork() { GiveBack(tokens_); }
  // All of it has, or (not `finished`) it was cut off by its deadline or its caller: what was
  // expected of it can be compared. Not for work that ended for another reason.
  void Ended(absl::Time now, bool finished);

 private:
  friend class Admission;
  Permit(Admission& admission, const Caller& caller, int64_t bytes)
      : admission_(&admission), caller_(caller), bytes_(bytes) {}
  void GiveBackAll();

  Admission* admission_;
  Caller caller_;
  std::string model_;
  int64_t bytes_ = 0;
  int64_t tokens_ = 0;
  double rows_per_token_ = 0;
  absl::Time charged_ = absl::InfinitePast();
  Estimate estimate_;
};

}  // namespace linnet::server
