#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/admission_observer.h"
#include "server/admission/expected_work.h"
#include "server/admission/latency_estimator.h"
#include "server/admission/probe_policy.h"
#include "server/admission/quota.h"
#include "server/base/caller.h"
#include "server/base/mutex.h"
#include "server/schedule/step_report.h"

namespace linnet::server {

struct AdmissionLimits {
  // Max admitted work: the sum over all segments of (source + expected target tokens) x beam size
  // (ExpectedWork). The default is more than the sentences take that fit into max_bytes.
  int64_t max_tokens = 4'000'000;
  // Max memory that calls hold, from the first byte of a request to the last of its reply.
  int64_t max_bytes = int64_t{256} << 20;
};

// The work of a call, known once its text is tokenised.
struct CallWork {
  std::string model;
  CallSize size = {};
  absl::Duration answer =
      absl::ZeroDuration();  // estimated time to build the answer after decoding
  // Estimated time to load the engines of its models first. It counts before their first step as
  // well, when the rest of the estimate is unknown.
  absl::Duration load = absl::ZeroDuration();
  absl::Time deadline = absl::InfiniteFuture();
  // Work on another model that begins when this has ended: an estimate. The deadline is for both.
  struct Next {
    std::string model;
    CallSize size = {};
  };
  std::optional<Next> next = std::nullopt;
};

class Permit;

// Limits the calls in flight, waiting and running, by memory and by work. Everything that waits in
// the server holds a permit, so no queue needs a limit of its own. (A call is admitted to
// the server; Batcher later adds its sequences to the batch.)
//
// A call is admitted if there is room, if its client stays within its share (Quota), and if its
// latency estimate times a learned safety factor fits its deadline (LatencyEstimator). It is
// charged for all the memory that it may hold, and for the work that it is expected to take. An
// idle engine admits some calls that do not fit as probes (ProbePolicy). One per server.
// Thread-safe; outlives its permits.
class Admission {
 public:
  // `seed` is for the jitter of the retry delays.
  Admission(const AdmissionLimits& limits, AdmissionObserver& observer,
            uint32_t seed = std::random_device{}());

  // Fixed memory of a call: its objects here and in gRPC, and its headers.
  static constexpr int64_t kBytesPerCall = 16384;
  // Max work of one call, or a quarter of max_tokens if that is more. A text that needs more is
  // read up to there only, so this bounds what a text costs before it is refused.
  static constexpr int64_t kMaxCallTokens = 1'000'000;

  // Returns a permit for `bytes` plus kBytesPerCall. RESOURCE_EXHAUSTED if the server has no room
  // for them or the client has used its share.
  absl::StatusOr<Permit> Enter(const Caller& caller, int64_t bytes);
  // Records a step of the model's scheduler and its duration including the sinks, for the latency
  // estimates.
  void StepMade(const std::string& model, const StepReport& report, absl::Duration cycle);

  const AdmissionLimits& limits() const { return limits_; }
  // Max work of one call, if all its targets are as long as they may be: as kMaxCallTokens says,
  // or what its client may hold while nothing else is admitted, if that is less.
  int64_t MaxCallTokens(const Caller& caller) const;
  int64_t tokens() const;
  int64_t bytes() const;

 private:
  friend class Permit;
  // `held`: bytes that the call holds already.
  absl::Status AddBytesIfRoom(const Caller& caller, int64_t bytes, int64_t held);
  // Changes the bytes without a check against the limit. Negative: gives them back.
  void ChangeBytes(const Caller& caller, int64_t bytes);
  // The charge for a call, and the estimate of its latency.
  struct Charged {
    int64_t tokens = 0;
    int64_t next_tokens = 0;
    Estimate estimate = {};
  };
  absl::StatusOr<Charged> Charge(const Caller& caller, const CallWork& work, absl::Time now);
  // Charges without a check.
  Charged ChargeUnchecked(const Caller& caller, const CallWork& work);
  Charged ExpectedCharge(const CallWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Add(const Caller& caller, const CallWork& work, const Charged& charged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckWait(const Caller& caller, const std::string& model, absl::Time deadline,
                         absl::Time now);
  void Ended(const std::string& model, const Estimate& estimate, absl::Duration actual,
             absl::Time now, bool finished);
  // Not OK if the call is not expected to end before its deadline. Marks the estimate of a probe.
  absl::Status CheckDeadline(const CallWork& work, Estimate& expected,
                             const Estimate& expected_next, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `charged`: the part of the charge for so many tokens.
  void GiveBackTokens(const Caller& caller, const std::string& model, int64_t charged,
                      int64_t tokens, double rows);
  // The retry delay for a client when the work ahead of it takes `drain`. Jitter of 25 % keeps
  // clients from all retrying at once.
  absl::Duration RetryDelay(absl::Duration drain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration TimeToDrain() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportAdmitted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const AdmissionLimits limits_;
  AdmissionObserver& observer_;
  mutable Mutex mu_;
  Quota tokens_ ABSL_GUARDED_BY(mu_);
  Quota bytes_ ABSL_GUARDED_BY(mu_);
  struct Model {
    LatencyEstimator estimator;
    ExpectedWork expected;
    ProbePolicy probes;
    // The same for estimates of the time to load, which loads alone correct. A load may unload
    // another model.
    ProbePolicy load_probes = ProbePolicy::AfterAPause();
  };
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mu_);
  std::minstd_rand random_ ABSL_GUARDED_BY(mu_);
};

// The bytes and the work that one call holds; the destructor gives them back. One thread at a time
// may change the bytes, and one thread at a time (possibly another one) the work.
class Permit {
 public:
  Permit(Permit&& other) noexcept;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit();

  int64_t bytes() const { return bytes_; }
  // Adds bytes; call it before the memory is allocated. RESOURCE_EXHAUSTED if there is no room now,
  // INVALID_ARGUMENT if it never fits; on error the permit is unchanged.
  absl::Status Hold(int64_t bytes);
  // Sets the bytes without a check: for memory that was freed, or that is already in use.
  void SetBytes(int64_t bytes);

  // Sets the priority that the request asks for; call it before Charge.
  void SetPriority(Priority priority) { caller_.priority = priority; }
  // DEADLINE_EXCEEDED if the queue of the model is so long that no call of this caller is expected
  // to end in time; so its text need not be read.
  absl::Status CheckWait(const std::string& model, absl::Time deadline, absl::Time now) const {
    return admission_->CheckWait(caller_, model, deadline, now);
  }
  // INVALID_ARGUMENT if a call of at least that much work never fits.
  absl::Status CheckWork(int64_t tokens) const;
  // Adds the work; call it once, when the text is tokenised. RESOURCE_EXHAUSTED if there is no room
  // now, DEADLINE_EXCEEDED if the call is not expected to end in time, INVALID_ARGUMENT if it never
  // fits; on error the permit is unchanged.
  absl::Status Charge(const CallWork& work, absl::Time now);
  // True if CallWork::next was charged and has not begun.
  bool has_next() const { return next_.tokens > 0; }
  // Replaces what is charged, which has_next(), by the next work, now that its size is known. That
  // is not refused: the call was admitted with its estimate, and is half done.
  void Continue(const CallWork& work, absl::Time now);
  // Gives back a part of the work, but not of the next, when it has ended.
  void GiveBack(int64_t tokens) { GiveBack(tokens, work_); }
  // Gives back all of the work, the next included, and keeps the bytes.
  void GiveBackWork() {
    GiveBack(work_.tokens, work_);
    GiveBack(next_.tokens, next_);
  }
  // Compares the time that the work took with its estimate. `finished` is false if the deadline or
  // a cancellation ended it. Do not call it for work that ended for another reason.
  void Ended(absl::Time now, bool finished);

 private:
  friend class Admission;
  // Work that is charged for a model.
  struct Work {
    Work() = default;
    Work(std::string model, const CallSize& size);
    std::string model = {};
    int64_t tokens = 0;
    int64_t charged = 0;  // for them
    double rows_per_token = 0;
  };

  Permit(Admission& admission, const Caller& caller, int64_t bytes)
      : admission_(&admission), caller_(caller), bytes_(bytes) {}
  void GiveBack(int64_t tokens, Work& work);
  void GiveBackAll();

  Admission* admission_;
  Caller caller_;
  int64_t bytes_ = 0;
  Work work_;
  Work next_;
  absl::Time charged_ = absl::InfinitePast();
  Estimate estimate_;
};

}  // namespace linnet::server
