#pragma once

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"
#include "server/text/call_context.h"
#include "server/text/text_pool.h"

namespace linnet::server {

// A DetectLanguage call: it detects the languages of its texts in jobs on the text pool, one after
// the other. Its jobs share it.
class DetectionCall : public std::enable_shared_from_this<DetectionCall> {
 public:
  // Called exactly once, on any thread, unless Start throws.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // The request has been checked. Pool, request and response must outlive the call.
  DetectionCall(TextPool& pool, const linnet::v1::DetectLanguageRequest& request,
                linnet::v1::DetectLanguageResponse& response, const CallContext& context, Done done)
      : pool_(pool),
        request_(request),
        response_(response),
        context_(WithoutPermit(context)),
        done_(std::move(done)) {}

  void Start() { RunNextJob(); }

 private:
  void RunNextJob();
  // On the pool: fills the detections up to text `end`.
  void Detect(int end);
  void End(absl::Status status);

  TextPool& pool_;
  const linnet::v1::DetectLanguageRequest& request_;
  linnet::v1::DetectLanguageResponse& response_;
  const CallContext context_;
  Done done_;
  int next_ = 0;  // text
};

}  // namespace linnet::server
