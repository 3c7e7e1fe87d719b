#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/rpc/call_record.h"
#include "server/rpc/raw_methods.h"
#include "server/text/text_call.h"

namespace linnet::server {

// Returns the labels of a request for the log; "" for requests without labels.
template <typename Request>
std::string RequestLabels(const Request& request) {
  if constexpr (requires { request.labels(); }) return LabelText(request.labels());
  return "";
}
template <typename Request>
int64_t ContentCount(const Request& request) {
  if constexpr (requires { request.contents_size(); }) return request.contents_size();
  if constexpr (requires { request.pairs_size(); }) return request.pairs_size();
  return 0;
}

// A call whose client sends one message: reads it, and calls Begin once it has been admitted and
// parsed. The call deletes itself when gRPC is done with it, which may be before Finish returns, so
// nothing is touched after Finish.
template <typename Message, typename Response>
class SingleRequestCall : public CallReactor {
 public:
  void OnReadDone(bool ok) final {
    record_.ReadEnds(ok);
    std::optional<CallContext> context;
    absl::Status status;
    // gRPC would catch what nobody has caught here, and the call would never end.
    try {
      status = ok ? Admit() : absl::CancelledError("the client sent no request");
      context.emplace(CallContext{.arrived = record_.arrived(),
                                  .deadline = deadline_,
                                  .cancelled = cancelled_,
                                  .permit = permit_,
                                  .caller = record_.caller()});
    } catch (...) {
      LogException("request_not_read");
      status = ErrorOfException();
    }
    if (!status.ok()) return End(std::move(status));
    Begin(*context);
  }

  // May run concurrently with everything else, even before the constructor has returned.
  void OnCancel() final { cancelled_->Cancel(); }
  void OnDone() final { delete this; }

 protected:
  SingleRequestCall(const CallServices& services, Method method,
                    grpc::CallbackServerContext& context)
      : record_(services, method, context),
        deadline_(CallDeadline(context)),
        cancelled_(std::make_shared<Cancellation>()) {}

  // Starts to read the request; the last statement of a derived constructor.
  void Read() {
    if (!record_.refused().ok()) return End(record_.refused());
    record_.ReadBegins();
    this->StartRead(&buffer_);
  }

  // Fills response_ from request_, now or later, and then calls End. Does not throw.
  virtual void Begin(const CallContext& context) = 0;
  virtual void End(absl::Status status) = 0;

  // Finishes the call with `last`, its only or last message, unless the status is an error.
  // `request` provides the facts for the log. Call it once.
  template <typename Last, typename Request>
  void FinishWith(absl::Status status, const Last& last, const Request& request) {
    CallFacts facts;
    facts.contents = ContentCount(request);
    facts.request_bytes = request_bytes_;
    try {
      facts.labels = RequestLabels(request);
      if (status.ok()) status = SerializeTo(last, buffer_);
    } catch (...) {
      status = ErrorOfException();
    }
    const grpc::Status result = record_.Ended(std::move(status), facts);
    // From here until the client has read the response, only the buffer is needed.
    Message().Swap(&request_);
    Response().Swap(&response_);
    record_.WriteBegins();
    if (result.ok()) {
      this->StartWriteAndFinish(&buffer_, {}, result);
    } else {
      this->Finish(result);
    }
  }

  absl::Status Admit() {
    request_bytes_ = static_cast<int64_t>(buffer_.Length());
    ASSIGN_OR_RETURN(permit_, record_.Admit(buffer_, request_));
    return absl::OkStatus();
  }

  CallRecord record_;
  const absl::Time deadline_;
  int64_t request_bytes_ = 0;
  Message request_;
  Response response_;
  std::shared_ptr<Cancellation> cancelled_;
  grpc::ByteBuffer buffer_;         // of the request, then of the write in flight
  std::shared_ptr<Permit> permit_;  // until the answer is sent
};

}  // namespace linnet::server
