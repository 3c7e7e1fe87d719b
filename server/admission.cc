#include "server/admission.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace linnet::server {
namespace {

// What the bookkeeping of a call weighs beside its text, so that many tiny calls fill the house as
// well.
constexpr int64_t kBytesPerCall = 4096;
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

}  // namespace

Admission::Admission(const AdmissionLimits& limits, Metrics& metrics)
    : limits_(limits), metrics_(metrics) {
  metrics_.SetAdmissionLimits(limits_.max_tokens, limits_.max_bytes);
}

absl::StatusOr<Permit> Admission::Enter(int64_t bytes) {
  bytes += kBytesPerCall;
  MutexLock lock(mu_);
  if (bytes_ + bytes > limits_.max_bytes) {
    metrics_.Rejected(RejectReason::kBytes);
    return Busy(Reason::kTooManyBytes,
                absl::StrCat("the server holds requests of ", bytes_, " bytes and takes at most ",
                             limits_.max_bytes, ": this one has ", bytes, ", retry later"),
                kRetryDelay,
                {{"admittedBytes", absl::StrCat(bytes_)},
                 {"requestBytes", absl::StrCat(bytes)},
                 {"maxBytes", absl::StrCat(limits_.max_bytes)}});
  }
  bytes_ += bytes;
  metrics_.SetAdmitted(tokens_, bytes_);
  return Permit(*this, bytes);
}

absl::Status Admission::Charge(int64_t tokens) {
  ErrorMetadata metadata = {{"requestTokens", absl::StrCat(tokens)},
                            {"maxTokens", absl::StrCat(limits_.max_tokens)}};
  if (tokens > limits_.max_tokens) {
    return BadField("contents", Reason::kCallTooLarge,
                    absl::StrCat("the call needs ", tokens,
                                 " tokens of work ((source + most target tokens) x beam size), "
                                 "this server admits at most ",
                                 limits_.max_tokens, ": send less text at once"),
                    std::move(metadata));
  }
  MutexLock lock(mu_);
  if (tokens_ + tokens > limits_.max_tokens) {
    metrics_.Rejected(RejectReason::kTokens);
    metadata.emplace_back("admittedTokens", absl::StrCat(tokens_));
    return Busy(Reason::kTooMuchWork,
                absl::StrCat("the server has ", tokens_, " tokens of work and takes at most ",
                             limits_.max_tokens, ": this call needs ", tokens, ", retry later"),
                kRetryDelay, std::move(metadata));
  }
  tokens_ += tokens;
  metrics_.SetAdmitted(tokens_, bytes_);
  return absl::OkStatus();
}

void Admission::Leave(int64_t bytes, int64_t tokens) {
  MutexLock lock(mu_);
  bytes_ -= bytes;
  tokens_ -= tokens;
  metrics_.SetAdmitted(tokens_, bytes_);
}

int64_t Admission::tokens() const {
  MutexLock lock(mu_);
  return tokens_;
}

int64_t Admission::bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

Permit::Permit(Permit&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)),
      bytes_(other.bytes_),
      tokens_(other.tokens_) {}

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  GiveBack();
  admission_ = std::exchange(other.admission_, nullptr);
  bytes_ = other.bytes_;
  tokens_ = other.tokens_;
  return *this;
}

Permit::~Permit() { GiveBack(); }

absl::Status Permit::Charge(int64_t tokens) {
  absl::Status status = admission_->Charge(tokens);
  if (status.ok()) tokens_ += tokens;
  return status;
}

void Permit::GiveBack() {
  if (admission_ != nullptr) std::exchange(admission_, nullptr)->Leave(bytes_, tokens_);
}

}  // namespace linnet::server
