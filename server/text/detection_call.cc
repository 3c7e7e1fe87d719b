#include "server/text/detection_call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/request/language_detector.h"

namespace linnet::server {
namespace {

void Describe(const LanguageGuess& guess, linnet::v1::LanguageDetection& detection) {
  detection.set_reliable(guess.reliable);
  for (const LanguageGuess::Language& language : guess.languages) {
    linnet::v1::DetectedLanguage& detected = *detection.add_languages();
    detected.set_language_code(language.code);
    detected.set_confidence(language.share);
  }
}

}  // namespace

void DetectionCall::RunNextJob() {
  int64_t cost = 0;
  int end = next_;
  for (; end < request_.contents_size() && cost < kBytesPerTurn; ++end)
    cost += static_cast<int64_t>(std::min(request_.contents(end).size(), kMaxBytesRead)) +
            kBytesPerText;
  pool_.Run(
      {.stage = TextStage::kPrepare,
       .flow = CallerFlow(context_.caller),
       .call = context_.caller.call,
       .bytes = cost,
       .run = [self = shared_from_this(), end] { self->Detect(end); },
       .fail = [self = shared_from_this()](absl::Status status) { self->End(std::move(status)); }});
}

void DetectionCall::Detect(int end) {
  for (; next_ < end; ++next_) {
    if (context_.deadline <= absl::Now()) {
      return End(absl::DeadlineExceededError("the deadline passed before all texts were read"));
    }
    if (context_.cancelled->cancelled())
      return End(absl::CancelledError("cancelled by the caller"));
    Describe(DetectLanguage(request_.contents(next_)), *response_.add_detections());
  }
  next_ < request_.contents_size() ? RunNextJob() : End(absl::OkStatus());
}

void DetectionCall::End(absl::Status status) {
  Done done = std::exchange(done_, nullptr);
  if (done != nullptr) done(std::move(status));
}

}  // namespace linnet::server
