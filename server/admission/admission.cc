#include "server/admission/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

// Bounds of the retry delay.
constexpr absl::Duration kMinRetryDelay = absl::Milliseconds(100);
constexpr absl::Duration kMaxRetryDelay = absl::Minutes(1);
// The retry delay as long as no step was recorded.
constexpr absl::Duration kUnknownRetryDelay = absl::Seconds(1);

std::string Format(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(1)));
}

int64_t TotalTokens(const CallWork& work) {
  return work.size.tokens + (work.next.has_value() ? work.next->size.tokens : 0);
}

// The answer to a call that is not expected to end before its deadline, which is in `left`.
absl::Status TooClose(absl::Duration needed, absl::Duration left, ErrorMetadata metadata) {
  return DeadlineTooClose(
      absl::StrCat("the answer may take ", Format(needed), ", the deadline is in ", Format(left),
                   ": set a later one, or retry when the server is less busy"),
      std::move(metadata));
}

// `at_least` is empty, or qualifies the tokens.
absl::Status CallTooLarge(absl::string_view at_least, int64_t tokens, int64_t max) {
  return BadField("contents", Reason::kCallTooLarge,
                  absl::StrCat("the call needs ", at_least, tokens,
                               " tokens of work ((source + max target tokens) x beam size), this "
                               "server gives a call at most ",
                               max, ": send less text at once"),
                  {{"requestTokens", absl::StrCat(tokens)}, {"maxTokens", absl::StrCat(max)}});
}

}  // namespace

Admission::Admission(const AdmissionLimits& limits, AdmissionObserver& observer, uint32_t seed)
    : limits_(limits),
      observer_(observer),
      tokens_(limits.max_tokens),
      bytes_(limits.max_bytes),
      random_(seed) {
  observer_.SetAdmissionLimits(limits_.max_tokens, limits_.max_bytes);
}

int64_t Admission::MaxCallTokens(const Caller& caller) const {
  return std::min(Quota(limits_.max_tokens).share(caller),
                  std::max(kMaxCallTokens, limits_.max_tokens / 4));
}

absl::Duration Admission::TimeToDrain() const {
  absl::Duration drain = absl::ZeroDuration();
  for (const auto& [name, model] : models_) {
    if (model.estimator.idle()) continue;  // a model that nobody calls costs nothing here
    drain = std::max(drain, model.estimator.TimeFor(model.estimator.tokens()));
  }
  return drain;
}

absl::Duration Admission::RetryDelay(absl::Duration drain) {
  if (drain == absl::ZeroDuration()) drain = kUnknownRetryDelay;
  const double jitter = std::uniform_real_distribution<double>(0.75, 1.25)(random_);
  return std::clamp(drain * jitter, kMinRetryDelay, kMaxRetryDelay);
}

void Admission::ReportAdmitted() {
  observer_.SetAdmitted(tokens_.held(), bytes_.held(), TimeToDrain());
}

absl::StatusOr<Permit> Admission::Enter(const Caller& caller, int64_t bytes) {
  bytes += kBytesPerCall;
  Permit permit(*this, caller, 0);
  RETURN_IF_ERROR(AddBytesIfRoom(caller, bytes, 0));
  permit.bytes_ = bytes;
  return permit;
}

absl::Status Admission::AddBytesIfRoom(const Caller& caller, int64_t bytes, int64_t held) {
  MutexLock lock(mu_);
  // It would not fit if it were the only call either.
  if (const int64_t max = Quota(limits_.max_bytes).share(caller); held + bytes > max) {
    return BadField(
        kWholeRequest, Reason::kCallTooLarge,
        absl::StrCat("needs ", held + bytes,
                     " bytes of memory, and this server gives a call at most ", max,
                     ": send less text at once, or ask for fewer hypotheses or no alignments"),
        {{"requestBytes", absl::StrCat(held + bytes)}, {"maxBytes", absl::StrCat(max)}});
  }
  const Quota::Decision decision = bytes_.Check(caller, bytes);
  if (decision == Quota::Decision::kFits) {
    bytes_.Take(caller, bytes);
    ReportAdmitted();
    return absl::OkStatus();
  }
  const bool full = decision == Quota::Decision::kFull;
  const int64_t in_use = full ? bytes_.held() : bytes_.held_by(caller);
  const int64_t max = full ? bytes_.max() : bytes_.share(caller);
  observer_.Rejected(full ? RejectReason::kBytes : RejectReason::kShare);
  return Busy(full ? Reason::kTooManyBytes : Reason::kShareUsed,
              absl::StrCat("calls ", full ? "" : "of this client ", "hold ", in_use,
                           " bytes of memory, the limit is ", max, ": this one needs ", bytes,
                           " more, retry later"),
              RetryDelay(TimeToDrain()),
              {{"admittedBytes", absl::StrCat(in_use)},
               {"requestBytes", absl::StrCat(bytes)},
               {"maxBytes", absl::StrCat(max)}},
              full ? "server" : "client");
}

absl::StatusOr<Admission::Charged> Admission::Charge(const Caller& caller, const CallWork& work,
                                                     absl::Time now) {
  // It would not fit if it were the only call either.
  if (const int64_t max = MaxCallTokens(caller), all = TotalTokens(work); all > max)
    return CallTooLarge("", all, max);
  MutexLock lock(mu_);
  Charged charged = ExpectedCharge(work);
  const int64_t tokens = charged.tokens + charged.next_tokens;
  LatencyEstimator& estimator = models_[work.model].estimator;
  const Quota::Decision decision = tokens_.Check(caller, tokens);
  if (decision != Quota::Decision::kFits) {
    const bool full = decision == Quota::Decision::kFull;
    const int64_t held = full ? tokens_.held() : tokens_.held_by(caller);
    const int64_t max = full ? tokens_.max() : tokens_.share(caller);
    observer_.Rejected(full ? RejectReason::kTokens : RejectReason::kShare);
    const double part =
        static_cast<double>(held) / static_cast<double>(std::max<int64_t>(1, tokens_.held()));
    return Busy(
        full ? Reason::kTooMuchWork : Reason::kShareUsed,
        absl::StrCat("the server has ", held, " tokens of work", full ? "" : " of this client",
                     ", the limit is ", max, ": this call needs ", tokens, ", retry later"),
        RetryDelay(TimeToDrain() * part),
        {{"requestTokens", absl::StrCat(tokens)},
         {"admittedTokens", absl::StrCat(held)},
         {"maxTokens", absl::StrCat(max)}},
        full ? "server" : "client");
  }
  Estimate expected = estimator.TimeToFinish(caller, work.size);
  if (expected.time > absl::ZeroDuration()) expected.time += work.answer;
  Estimate expected_next;
  if (work.next.has_value()) {
    expected_next = models_[work.next->model].estimator.TimeToFinish(caller, work.next->size);
  }
  observer_.Estimated(work.load + expected.time + expected_next.time);
  RETURN_IF_ERROR(CheckDeadline(work, expected, expected_next, now));
  Add(caller, work, charged);
  ReportAdmitted();
  charged.estimate = expected;
  return charged;
}

Admission::Charged Admission::ExpectedCharge(const CallWork& work) {
  Charged charged = {.tokens = models_[work.model].expected.Of(work.size)};
  if (work.next.has_value())
    charged.next_tokens = models_[work.next->model].expected.Of(work.next->size);
  return charged;
}

void Admission::Add(const Caller& caller, const CallWork& work, const Charged& charged) {
  // Each may throw std::bad_alloc; then nothing is changed.
  LatencyEstimator& estimator = models_[work.model].estimator;
  LatencyEstimator* const next =
      work.next.has_value() ? &models_[work.next->model].estimator : nullptr;
  estimator.Add(caller, work.size.tokens, work.size.rows);
  bool next_added = false;
  try {
    if (next != nullptr) next->Add(caller, work.next->size.tokens, work.next->size.rows);
    next_added = next != nullptr;
    tokens_.Take(caller, charged.tokens + charged.next_tokens);
  } catch (...) {
    if (next_added) next->Remove(caller, work.next->size.tokens, work.next->size.rows);
    estimator.Remove(caller, work.size.tokens, work.size.rows);
    throw;
  }
}

Admission::Charged Admission::ChargeUnchecked(const Caller& caller, const CallWork& work) {
  MutexLock lock(mu_);
  Charged charged = ExpectedCharge(work);
  charged.estimate = models_[work.model].estimator.TimeToFinish(caller, work.size);
  if (charged.estimate.time > absl::ZeroDuration()) charged.estimate.time += work.answer;
  Add(caller, work, charged);
  ReportAdmitted();
  return charged;
}

absl::Status Admission::CheckWait(const Caller& caller, const std::string& model,
                                  absl::Time deadline, absl::Time now) {
  MutexLock lock(mu_);
  const LatencyEstimator& estimator = models_[model].estimator;
  const absl::Duration left = deadline - now;
  // Charge checks every call. This is for long queues, and costs little otherwise.
  if (estimator.TimeFor(estimator.tokens()) < left / 4) return absl::OkStatus();
  const Estimate least = estimator.TimeToFinish(caller, {.tokens = 1, .longest = 1, .rows = 1});
  const absl::Duration needed = estimator.TimeNeeded(least, now);
  if (!least.waits || needed <= left) return absl::OkStatus();
  observer_.Rejected(RejectReason::kDeadline);
  return TooClose(needed, left, {{"estimate", Format(needed)}, {"remaining", Format(left)}});
}

absl::Status Admission::CheckDeadline(const CallWork& work, Estimate& expected,
                                      const Estimate& expected_next, absl::Time now) {
  Model& model = models_[work.model];
  const absl::Duration left = work.deadline - now;
  const LatencyEstimator* const next =
      work.next.has_value() ? &models_[work.next->model].estimator : nullptr;
  // The safety factor is learned from calls that wait for no load.
  absl::Duration needed = work.load + model.estimator.TimeNeeded(expected, now);
  if (next != nullptr) needed += next->TimeNeeded(expected_next, now);
  if (needed <= left) return absl::OkStatus();
  // If the answer would take longer on an idle server that has loaded the models as well, the
  // deadline is wrong (the client's error), not the state of the server.
  absl::Duration needed_when_idle =
      model.estimator.TimeNeeded(model.estimator.TimeWhenIdle(work.size), now);
  if (next != nullptr)
    needed_when_idle += next->TimeNeeded(next->TimeWhenIdle(work.next->size), now);
  const bool too_short = needed_when_idle > left;
  // A probe that ends while its model is loaded would correct no estimate.
  if (too_short && model.estimator.idle() && model.probes.Admit(now, left - work.load)) {
    expected.probes = true;
    return absl::OkStatus();
  }
  // One that begins a load corrects its estimate even if it ends before: the load goes on, and is
  // what the probe costs. It may be the second model's, so the first need not be idle.
  if (!too_short && work.load + needed_when_idle > left &&
      model.load_probes.Admit(now, std::max(left, work.load)))
    return absl::OkStatus();
  observer_.Rejected(too_short ? RejectReason::kShortDeadline : RejectReason::kDeadline);
  ErrorMetadata metadata = {{"requestTokens", absl::StrCat(TotalTokens(work))},
                            {"estimate", Format(too_short ? needed_when_idle : needed)},
                            {"remaining", Format(left)}};
  if (too_short) {
    return DeadlineTooShort(absl::StrCat("the answer may take ", Format(needed_when_idle),
                                         " even when the server is idle, the deadline is in ",
                                         Format(left), ": set a later one, or send less text"),
                            std::move(metadata));
  }
  return TooClose(needed, left, std::move(metadata));
}

void Admission::Ended(const std::string& model, const Estimate& estimate, absl::Duration actual,
                      absl::Time now, bool finished) {
  MutexLock lock(mu_);
  Model& own = models_[model];
  LatencyEstimator& estimator = own.estimator;
  if (finished) {
    estimator.RecordCompletion(estimate, actual, now);
    if (estimate.probes) own.probes.Answered();
  } else {
    estimator.RecordTimeout(estimate, actual, now);
  }
  observer_.SetSafetyFactor(model, estimate.waits, estimator.safety_factor(estimate, now));
}

void Admission::StepMade(const std::string& model, const StepReport& report, absl::Duration cycle) {
  MutexLock lock(mu_);
  Model& own = models_[model];
  own.estimator.StepMade(report, cycle);
  own.expected.StepMade(report);
}

void Admission::GiveBackTokens(const Caller& caller, const std::string& model, int64_t charged,
                               int64_t tokens, double rows) {
  MutexLock lock(mu_);
  tokens_.GiveBack(caller, charged);
  models_[model].estimator.Remove(caller, tokens, rows);
  ReportAdmitted();
}

void Admission::ChangeBytes(const Caller& caller, int64_t bytes) {
  MutexLock lock(mu_);
  bytes > 0 ? bytes_.Take(caller, bytes) : bytes_.GiveBack(caller, -bytes);
  ReportAdmitted();
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
      bytes_(other.bytes_),
      work_(std::move(other.work_)),
      next_(std::move(other.next_)),
      charged_(other.charged_),
      estimate_(other.estimate_) {}

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  GiveBackAll();
  admission_ = std::exchange(other.admission_, nullptr);
  caller_ = std::move(other.caller_);
  bytes_ = other.bytes_;
  work_ = std::move(other.work_);
  next_ = std::move(other.next_);
  charged_ = other.charged_;
  estimate_ = other.estimate_;
  return *this;
}

Permit::~Permit() { GiveBackAll(); }

Permit::Work::Work(std::string model, const CallSize& size)
    : model(std::move(model)),
      tokens(size.tokens),
      rows_per_token(size.rows / static_cast<double>(std::max<int64_t>(1, size.tokens))) {}

absl::Status Permit::CheckWork(int64_t tokens) const {
  const int64_t max = admission_->MaxCallTokens(caller_);
  return tokens > max ? CallTooLarge("at least ", tokens, max) : absl::OkStatus();
}

absl::Status Permit::Charge(const CallWork& work, absl::Time now) {
  Work charged(work.model, work.size);
  Work next = work.next.has_value() ? Work(work.next->model, work.next->size) : Work();
  ASSIGN_OR_RETURN(const Admission::Charged amounts, admission_->Charge(caller_, work, now));
  work_ = std::move(charged);
  work_.charged = amounts.tokens;
  next_ = std::move(next);
  next_.charged = amounts.next_tokens;
  charged_ = now;
  estimate_ = amounts.estimate;
  return absl::OkStatus();
}

void Permit::Continue(const CallWork& work, absl::Time now) {
  Work charged(work.model, work.size);
  GiveBackWork();
  const Admission::Charged amounts = admission_->ChargeUnchecked(caller_, work);
  estimate_ = amounts.estimate;
  work_ = std::move(charged);
  work_.charged = amounts.tokens;
  charged_ = now;
}

void Permit::Ended(absl::Time now, bool finished) {
  // A probe through two models is answered after the second one, whose time its estimate leaves
  // out.
  estimate_.probes &= !has_next();
  admission_->Ended(work_.model, estimate_, now - charged_, now, finished);
}

absl::Status Permit::Hold(int64_t bytes) {
  RETURN_IF_ERROR(admission_->AddBytesIfRoom(caller_, bytes, bytes_));
  bytes_ += bytes;
  return absl::OkStatus();
}

void Permit::SetBytes(int64_t bytes) {
  if (bytes == bytes_) return;
  admission_->ChangeBytes(caller_, bytes - bytes_);
  bytes_ = bytes;
}

void Permit::GiveBack(int64_t tokens, Work& work) {
  tokens = std::min(tokens, work.tokens);
  if (tokens <= 0) return;
  // In proportion, and what rounding leaves with the last tokens.
  const auto charged =
      tokens == work.tokens
          ? work.charged
          : static_cast<int64_t>(static_cast<double>(work.charged) * static_cast<double>(tokens) /
                                 static_cast<double>(work.tokens));
  work.tokens -= tokens;
  work.charged -= charged;
  admission_->GiveBackTokens(caller_, work.model, charged, tokens,
                             static_cast<double>(tokens) * work.rows_per_token);
}

void Permit::GiveBackAll() {
  if (admission_ == nullptr) return;
  GiveBackWork();
  std::exchange(admission_, nullptr)->ChangeBytes(caller_, -bytes_);
}

}  // namespace linnet::server
