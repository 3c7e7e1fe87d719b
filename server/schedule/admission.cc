#include "server/schedule/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace linnet::server {
namespace {

// What the bookkeeping of a call weighs beside its text, so that many tiny calls fill the house as
// well.
constexpr int64_t kBytesPerCall = 4096;
// Between which times callers are told to come back.
constexpr absl::Duration kSoonest = absl::Milliseconds(100);
constexpr absl::Duration kLatest = absl::Minutes(1);
// As long as nobody knows how fast the house is.
constexpr absl::Duration kUnknown = absl::Seconds(1);

std::string InWords(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(1)));
}

}  // namespace

Admission::Admission(const AdmissionLimits& limits, Metrics& metrics)
    : limits_(limits),
      metrics_(metrics),
      tokens_(limits.max_tokens),
      bytes_(limits.max_bytes),
      random_(std::random_device{}()) {
  metrics_.SetAdmissionLimits(limits_.max_tokens, limits_.max_bytes);
}

absl::Duration Admission::TimeToDrain() const {
  absl::Duration drain = absl::ZeroDuration();
  for (const auto& [model, workload] : workloads_)
    drain = std::max(drain, workload.TimeFor(workload.tokens()));
  return drain;
}

absl::Duration Admission::RetryDelay(absl::Duration drain) {
  if (drain == absl::ZeroDuration()) drain = kUnknown;
  const double jitter = std::uniform_real_distribution<double>(0.75, 1.25)(random_);
  return std::clamp(drain * jitter, kSoonest, kLatest);
}

void Admission::Show() { metrics_.SetAdmitted(tokens_.held(), bytes_.held(), TimeToDrain()); }

absl::StatusOr<Permit> Admission::Enter(const Caller& caller, int64_t bytes) {
  bytes += kBytesPerCall;
  MutexLock lock(mu_);
  const Quota::Answer answer = bytes_.Ask(caller.client, bytes);
  if (answer == Quota::Answer::kFits) {
    bytes_.Take(caller.client, bytes);
    Show();
    return Permit(*this, caller, bytes);
  }
  const bool full = answer == Quota::Answer::kFull;
  const int64_t held = full ? bytes_.held() : bytes_.held_by(caller.client);
  const int64_t most = full ? bytes_.most() : bytes_.share(caller.client);
  metrics_.Rejected(full ? RejectReason::kBytes : RejectReason::kShare);
  return Busy(
      full ? Reason::kTooManyBytes : Reason::kShareUsed,
      absl::StrCat("the server holds requests of ", held, " bytes", full ? "" : " of this client",
                   " and takes at most ", most, ": this one has ", bytes, ", retry later"),
      RetryDelay(TimeToDrain()),
      {{"admittedBytes", absl::StrCat(held)},
       {"requestBytes", absl::StrCat(bytes)},
       {"maxBytes", absl::StrCat(most)}},
      full ? "server" : "client");
}

absl::StatusOr<Estimate> Admission::Charge(const Caller& caller, const CallWork& work,
                                           absl::Time now) {
  ErrorMetadata metadata = {{"requestTokens", absl::StrCat(work.tokens)}};
  if (work.tokens > limits_.max_tokens) {
    metadata.emplace_back("maxTokens", absl::StrCat(limits_.max_tokens));
    return BadField("contents", Reason::kCallTooLarge,
                    absl::StrCat("the call needs ", work.tokens,
                                 " tokens of work ((source + most target tokens) x beam size), "
                                 "this server admits at most ",
                                 limits_.max_tokens, ": send less text at once"),
                    std::move(metadata));
  }
  MutexLock lock(mu_);
  Workload& workload = workloads_[work.model];
  const Quota::Answer answer = tokens_.Ask(caller.client, work.tokens);
  if (answer != Quota::Answer::kFits) {
    const bool full = answer == Quota::Answer::kFull;
    const int64_t held = full ? tokens_.held() : tokens_.held_by(caller.client);
    const int64_t most = full ? tokens_.most() : tokens_.share(caller.client);
    metrics_.Rejected(full ? RejectReason::kTokens : RejectReason::kShare);
    metadata.emplace_back("admittedTokens", absl::StrCat(held));
    metadata.emplace_back("maxTokens", absl::StrCat(most));
    return Busy(full ? Reason::kTooMuchWork : Reason::kShareUsed,
                absl::StrCat("the server has ", held, " tokens of work",
                             full ? "" : " of this client", " and takes at most ", most,
                             ": this call needs ", work.tokens, ", retry later"),
                RetryDelay(full ? TimeToDrain() : workload.TimeFor(held)), std::move(metadata),
                full ? "server" : "client");
  }
  const Estimate expected = workload.TimeToFinish(caller, work.tokens, work.longest);
  metrics_.Estimated(expected.time);
  const absl::Duration needed = workload.TimeNeeded(expected);
  if (const absl::Duration left = work.deadline - now; needed > left) {
    metrics_.Rejected(RejectReason::kDeadline);
    metadata.emplace_back("estimate", InWords(needed));
    metadata.emplace_back("remaining", InWords(left));
    return DeadlineTooClose(
        absl::StrCat("the answer may take ", InWords(needed), ", the deadline is in ",
                     InWords(left), ": set a later one, or retry when the server is less busy"),
        std::move(metadata));
  }
  tokens_.Take(caller.client, work.tokens);
  workload.Add(caller, work.tokens);
  Show();
  return expected;
}

void Admission::Ended(const std::string& model, const Estimate& estimate, absl::Duration actual,
                      bool finished) {
  MutexLock lock(mu_);
  Workload& workload = workloads_[model];
  if (finished) {
    workload.Took(estimate, actual);
  } else {
    workload.CutOff(estimate, actual);
  }
  metrics_.SetMargin(model, estimate.waits, workload.margin(estimate));
}

void Admission::StepMade(const std::string& model, const StepReport& report, absl::Duration cycle) {
  MutexLock lock(mu_);
  workloads_[model].StepMade(report, cycle);
}

void Admission::GiveBackTokens(const Caller& caller, const std::string& model, int64_t tokens) {
  MutexLock lock(mu_);
  tokens_.GiveBack(caller.client, tokens);
  workloads_[model].Remove(caller, tokens);
  Show();
}

void Admission::GiveBackBytes(const Caller& caller, int64_t bytes) {
  MutexLock lock(mu_);
  bytes_.GiveBack(caller.client, bytes);
  Show();
}

int64_t Admission::tokens() const {
  MutexLock lock(mu_);
  return tokens_.held();
}

int64_t Admission::bytes() const {
  MutexLock lock(mu_);
  return bytes_.held();
}

Permit::Permit(Permit&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)),
      caller_(std::move(other.caller_)),
      model_(std::move(other.model_)),
      bytes_(other.bytes_),
      tokens_(other.tokens_),
      charged_(other.charged_),
      estimate_(other.estimate_) {}

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  GiveBackAll();
  admission_ = std::exchange(other.admission_, nullptr);
  caller_ = std::move(other.caller_);
  model_ = std::move(other.model_);
  bytes_ = other.bytes_;
  tokens_ = other.tokens_;
  charged_ = other.charged_;
  estimate_ = other.estimate_;
  return *this;
}

Permit::~Permit() { GiveBackAll(); }

absl::Status Permit::Charge(const CallWork& work, absl::Time now) {
  absl::StatusOr<Estimate> estimate = admission_->Charge(caller_, work, now);
  if (!estimate.ok()) return estimate.status();
  model_ = work.model;
  tokens_ = work.tokens;
  charged_ = now;
  estimate_ = *estimate;
  return absl::OkStatus();
}

void Permit::Ended(absl::Time now, bool finished) {
  admission_->Ended(model_, estimate_, now - charged_, finished);
}

void Permit::GiveBack(int64_t tokens) {
  tokens = std::min(tokens, tokens_);
  tokens_ -= tokens;
  admission_->GiveBackTokens(caller_, model_, tokens);
}

void Permit::GiveBackAll() {
  if (admission_ == nullptr) return;
  if (tokens_ > 0) admission_->GiveBackTokens(caller_, model_, tokens_);
  std::exchange(admission_, nullptr)->GiveBackBytes(caller_, bytes_);
}

}  // namespace linnet::server
