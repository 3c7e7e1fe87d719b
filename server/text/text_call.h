#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/admission/admission.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
#include "server/models/catalog.h"
#include "server/request/text_request.h"
#include "server/text/call_context.h"
#include "server/text/staged_call.h"
#include "server/text/text_pool.h"

namespace linnet::server {

// A document between its first line and its last. No call of TextCalls is in flight while it waits
// for its client.
class OpenDocument {
 public:
  virtual ~OpenDocument() = default;
  // Ends it after the lines in flight with SHUTTING_DOWN, unless these are its last.
  virtual void Drain() = 0;
};

// TextService without gRPC: runs calls from their requests to their answers.
//
// A call is checked and takes its permit on the caller's thread. It is split and tokenised on the
// text pool, charged, and submitted to its model's scheduler as one sequence per segment. The last
// sequence that ends sends it back to the pool, which assembles the texts. A stream goes to the
// pool whenever more of a text is stable. Thread-safe; only Drain blocks.
class TextCalls {
 public:
  // Called exactly once, with no lock held, on any thread, possibly before Translate returns. The
  // call holds no permit by then, except that of its context.
  using Done = StagedCall::Done;
  using OnPart = StagedCall::OnPart;

  // All of these must outlive the calls. The pool must outlive the catalog, whose schedulers send
  // calls to it.
  TextCalls(Catalog& catalog, Admission& admission, TextPool& pool, Metrics& metrics,
            const TextLimits& limits = {}, absl::Duration slow_call = absl::InfiniteDuration());
  ~TextCalls();  // drains at once

  // Request and response belong to the caller and must live until `done` is called. The response is
  // valid only if the status is OK.
  void Translate(const linnet::v1::TranslateRequest& request,
                 linnet::v1::TranslateResponse& response, const CallContext& context, Done done);
  void Summarize(const linnet::v1::SummarizeRequest& request,
                 linnet::v1::SummarizeResponse& response, const CallContext& context, Done done);
  // The same with streaming: `on_part` receives text as soon as it is stable. The response is that
  // of the calls above.
  void StreamTranslate(const linnet::v1::TranslateRequest& request,
                       linnet::v1::TranslateResponse& response, const CallContext& context,
                       OnPart on_part, Done done);
  void StreamSummarize(const linnet::v1::SummarizeRequest& request,
                       linnet::v1::SummarizeResponse& response, const CallContext& context,
                       OnPart on_part, Done done);
  void Score(const linnet::v1::ScoreRequest& request, linnet::v1::ScoreResponse& response,
             const CallContext& context, Done done);
  // Checks everything in a request except its texts.
  template <typename Request>
  absl::Status CheckSettings(const Request& request) const {
    return server::CheckSettings(request, catalog_, limits_);
  }
  // Counts a request that is refused for what it says; tokens that do not allow it count elsewhere.
  void CountInvalid(const absl::Status& status) const;
  // Drains the document when a drain begins, or now if one has begun. It may be destroyed earlier.
  void DrainLater(std::weak_ptr<OpenDocument> document);
  // Returns a permit for a call that holds that many bytes, for its context.
  absl::StatusOr<std::shared_ptr<Permit>> Admit(const Caller& caller, int64_t bytes);
  // Runs on the pool too, because a megabyte of text takes a while.
  void DetectLanguage(const linnet::v1::DetectLanguageRequest& request,
                      linnet::v1::DetectLanguageResponse& response, const CallContext& context,
                      Done done);
  void ListModels(linnet::v1::ListModelsResponse& response) const;
  absl::Status GetModel(const linnet::v1::GetModelRequest& request,
                        linnet::v1::GetModelResponse& response) const;

  const TextLimits& limits() const { return limits_; }
  // Returns a new number for Caller::call.
  uint64_t NewCall() { return next_call_.fetch_add(1, std::memory_order_relaxed); }

  // Refuses new calls with UNAVAILABLE from now on, ends open documents, and returns when every
  // call has ended. Calls that have not ended by the deadline end with UNAVAILABLE.
  void Drain(MonotonicTime deadline);

 private:
  // Runs `body(end)` with the call in flight. `end` may be copied; the first call of it answers. If
  // the body throws, the call ends with that error.
  template <typename Body>
  void InFlight(Done done, const Body& body);
  template <typename Request, typename Response>
  void Start(const Request& request, Response& response, const CallContext& context, OnPart on_part,
             Done done);
  // Checks the request at once, or on the pool if that takes the detection of many texts.
  template <typename Request, typename Response, typename End>
  void StartInFlight(const Request& request, Response& response, const CallContext& context,
                     OnPart on_part, End refuse);
  template <typename Request, typename Response, typename End>
  void CheckOnPool(const Request& request, Response& response, CallContext context, int64_t cost,
                   OnPart on_part, End refuse);
  template <typename Request, typename Response, typename End>
  void StartChecked(absl::StatusOr<TextRequest> checked, const Request& request, Response& response,
                    const CallContext& context, OnPart on_part, End refuse);
  template <typename End>
  void StartDetection(const linnet::v1::DetectLanguageRequest& request,
                      linnet::v1::DetectLanguageResponse& response, const CallContext& context,
                      End refuse);
  template <typename Response>
  void StartStages(TextRequest request, std::shared_ptr<Permit> permit, const CallContext& context,
                   Response& response, OnPart on_part, Done end);
  // Starts a call for the texts in each language (TextRequest::others and unchanged).
  template <typename Response>
  void StartGroups(TextRequest request, std::shared_ptr<Permit> permit, const CallContext& context,
                   Response& response, OnPart on_part, Done end);
  // Returns the permit of the context, or a new one for a request of that many bytes.
  absl::StatusOr<std::shared_ptr<Permit>> GetPermit(const CallContext& context, int64_t bytes);
  // DEADLINE_TOO_CLOSE if texts of this cost (TextJob::bytes) cannot be prepared in time.
  absl::Status CheckPrepareTime(const CallContext& context, int64_t cost);
  linnet::v1::RequestLimits request_limits() const;
  bool Enter();
  void Leave();

  Catalog& catalog_;
  Admission& admission_;
  TextPool& pool_;
  Metrics& metrics_;
  const TextLimits limits_;
  const absl::Duration slow_call_;
  std::atomic<uint64_t> next_call_ = 1;
  Mutex mu_;
  CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  // Some of them may have ended: those are removed whenever there are twice as many as at the last
  // removal.
  std::vector<std::weak_ptr<OpenDocument>> documents_ ABSL_GUARDED_BY(mu_);
  size_t max_documents_ ABSL_GUARDED_BY(mu_) = 16;
};

}  // namespace linnet::server
