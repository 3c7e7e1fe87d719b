#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "server/rpc/call_record.h"
#include "server/rpc/raw_methods.h"
#include "server/text/text_call.h"

namespace linnet::server {

// What the log says of a call's labels; methods without them have none.
template <typename Request>
std::string LabelsOf(const Request& request) {
  if constexpr (requires { request.labels(); }) return LabelText(request.labels());
  return "";
}
template <typename Request>
int64_t ContentsOf(const Request& request) {
  if constexpr (requires { request.contents_size(); }) return request.contents_size();
  if constexpr (requires { request.pairs_size(); }) return request.pairs_size();
  return 0;
}

// One call with one request and one answer. It deletes itself when gRPC is done with it, which may
// be before Finish returns: so nothing is touched after Finish.
template <typename Request, typename Response, typename Calls = TextCalls>
class UnaryCall final : public CallReactor {
 public:
  // Answers the request, now or later, through Done.
  using Start = void (*)(Calls&, const Request&, Response&, const CallContext&,
                         typename Calls::Done);

  UnaryCall(Calls& calls, Start start, const CallServices& services, Method method,
            grpc::CallbackServerContext& context)
      : calls_(calls),
        start_(start),
        record_(services, method, context),
        deadline_(DeadlineOf(context)),
        cancelled_(std::make_shared<Cancellation>()) {
    if (!record_.refused().ok()) {
      End(record_.refused());
      return;
    }
    record_.ReadBegins();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    record_.ReadEnds(ok);
    request_bytes_ = static_cast<int64_t>(message_.Length());
    absl::StatusOr<std::shared_ptr<Permit>> permit = record_.Admit(message_, request_);
    if (!permit.ok()) {
      End(permit.status());
      return;
    }
    permit_ = *std::move(permit);
    start_(calls_, request_, response_,
           {.arrived = record_.arrived(),
            .deadline = deadline_,
            .cancelled = cancelled_,
            .permit = permit_,
            .caller = record_.caller()},
           [this](absl::Status status) { End(std::move(status)); });
  }

  // May run beside everything else, also before the constructor has returned.
  void OnCancel() override { cancelled_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  void End(absl::Status status) {
    if (status.ok()) status = SerializeTo(response_, message_);
    const bool ok = status.ok();
    const grpc::Status result = record_.Ended(std::move(status), {.contents = ContentsOf(request_),
                                                                  .request_bytes = request_bytes_,
                                                                  .labels = LabelsOf(request_)});
    // What is left of the call until the client has read its answer is that.
    Request().Swap(&request_);
    Response().Swap(&response_);
    record_.WriteBegins();
    if (ok) {
      StartWriteAndFinish(&message_, {}, result);
    } else {
      Finish(result);
    }
  }

  Calls& calls_;
  const Start start_;
  CallRecord record_;
  const absl::Time deadline_;
  int64_t request_bytes_ = 0;
  Request request_;
  Response response_;
  std::shared_ptr<Cancellation> cancelled_;
  grpc::ByteBuffer message_;        // of the request, then of the answer
  std::shared_ptr<Permit> permit_;  // until the answer is sent
};

}  // namespace linnet::server
