#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "server/request/source_languages.h"
#include "server/request/text_request.h"
#include "server/text/call_context.h"
#include "server/text/text_pool.h"

namespace linnet::server {

// The cost of detecting the languages of a request, in bytes (TextJob::bytes); 0 if it names one.
int64_t DetectionCost(const linnet::v1::TranslateRequest& request);
int64_t DetectionCost(const linnet::v1::SummarizeRequest& request);
int64_t DetectionCost(const linnet::v1::ScoreRequest& request);

// The check of a request whose texts take long to detect: it runs on the text pool, a slice of the
// texts a turn. Its job on the pool owns it.
class PoolCheck : public std::enable_shared_from_this<PoolCheck> {
 public:
  // CheckRequest of the request.
  using Check =
      absl::AnyInvocable<absl::StatusOr<TextRequest>(std::unique_ptr<LanguageDetection>* later)>;
  // Called once, on the pool, with the result and the context.
  using Done = absl::AnyInvocable<void(absl::StatusOr<TextRequest>, const CallContext&)>;
  // Called instead if the request could not be checked, or after an exception of `done`.
  using Refuse = absl::AnyInvocable<void(absl::Status)>;

  // The context has its permit, and the request that many bytes. The pool must outlive the check.
  PoolCheck(TextPool& pool, CallContext context, int64_t request_bytes, Check check, Done done,
            Refuse refuse)
      : pool_(pool),
        context_(std::move(context)),
        request_bytes_(request_bytes),
        check_(std::move(check)),
        done_(std::move(done)),
        refuse_(std::move(refuse)) {}

  void Start() { RunNextJob(); }

 private:
  void RunNextJob();
  // On the pool: detects the languages of a slice of the texts; after the last one, checks the
  // request.
  void Run();

  TextPool& pool_;
  CallContext context_;
  const int64_t request_bytes_;
  Check check_;
  Done done_;
  Refuse refuse_;
  std::unique_ptr<LanguageDetection> detection_;
  int64_t held_ = 0;  // bytes of the permit, for the detection
};

}  // namespace linnet::server
