#include "server/text/pool_check.h"

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "server/request/language_detector.h"
#include "server/text/memory_cost.h"

namespace linnet::server {
namespace {

int64_t CostOfText(const std::string& text) {
  return kBytesPerText + static_cast<int64_t>(std::min(text.size(), kMaxBytesRead));
}

int64_t CostOfTexts(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  int64_t cost = 0;
  for (const std::string& text : texts) cost += CostOfText(text);
  return cost;
}

}  // namespace

int64_t DetectionCost(const linnet::v1::TranslateRequest& request) {
  return request.source_language_code().empty() ? CostOfTexts(request.contents()) : 0;
}
int64_t DetectionCost(const linnet::v1::SummarizeRequest& request) {
  return request.language_code().empty() ? CostOfTexts(request.contents()) : 0;
}
int64_t DetectionCost(const linnet::v1::ScoreRequest& request) {
  if (!request.source_language_code().empty()) return 0;
  int64_t cost = 0;
  for (const linnet::v1::ScorePair& pair : request.pairs()) cost += CostOfText(pair.source_text());
  return cost;
}

void PoolCheck::RunNextJob() {
  pool_.Run({.stage = TextStage::kPrepare,
             .flow = CallerFlow(context_.caller),
             .call = context_.caller.call,
             .bytes = kBytesPerTurn,
             .run =
                 [self = shared_from_this(), queued = absl::Now()] {
                   self->context_.text_queue +=
                       std::max(absl::Now() - queued, absl::ZeroDuration());
                   self->Run();
                 },
             .fail = [self = shared_from_this()](
                         absl::Status status) { self->refuse_(std::move(status)); }});
}

void PoolCheck::Run() {
  if (detection_ != nullptr) {
    if (context_.cancelled->cancelled())
      return refuse_(absl::CancelledError("cancelled by the caller"));
    if (context_.deadline <= absl::Now()) {
      return refuse_(absl::DeadlineExceededError("the deadline passed before the texts were read"));
    }
    detection_->Step(kBytesPerTurn);
    if (!detection_->done()) return RunNextJob();
  }
  absl::StatusOr<TextRequest> checked = check_(&detection_);
  Permit& permit = *context_.permit;
  if (detection_ != nullptr) {
    held_ = detection_->texts() * kBytesPerItem + request_bytes_;
    if (auto status = permit.Hold(held_); !status.ok()) return refuse_(std::move(status));
    return RunNextJob();
  }
  permit.SetBytes(permit.bytes() - held_);
  const CallContext context = std::exchange(context_, {});
  done_(std::move(checked), context);
}

}  // namespace linnet::server
