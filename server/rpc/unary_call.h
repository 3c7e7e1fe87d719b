#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "server/rpc/call_record.h"
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

// One call with one answer. It deletes itself when gRPC is done with it, which may be before Finish
// returns: so nothing is touched after Finish.
template <typename Request, typename Response, typename Calls = TextCalls>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Answers the request, now or later, through Done.
  using Start = void (*)(Calls&, const Request&, Response&, const CallContext&,
                         typename Calls::Done);

  UnaryCall(Calls& calls, Start start, const CallHouse& house, Method method,
            grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
            grpc::ByteBuffer& response)
      : record_(house, method, context),
        request_bytes_(static_cast<int64_t>(request.Length())),
        response_bytes_(response),
        cancelled_(std::make_shared<Cancellation>()) {
    if (!record_.refused().ok()) {
      End(record_.refused());
      return;
    }
    absl::StatusOr<std::shared_ptr<Permit>> permit = record_.Admit(request, request_);
    if (!permit.ok()) {
      End(permit.status());
      return;
    }
    permit_ = *std::move(permit);
    start(calls, request_, response_,
          {.arrived = record_.arrived(),
           .deadline = DeadlineOf(context),
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
    if (status.ok()) status = SerializeTo(response_, response_bytes_);
    const grpc::Status result = record_.Ended(std::move(status), {.contents = ContentsOf(request_),
                                                                  .request_bytes = request_bytes_,
                                                                  .labels = LabelsOf(request_)});
    // What is left of the call until the client has read its answer is that.
    Request().Swap(&request_);
    Response().Swap(&response_);
    record_.WriteBegins();
    Finish(result);
  }

  CallRecord record_;
  const int64_t request_bytes_;
  Request request_;
  Response response_;
  grpc::ByteBuffer& response_bytes_;
  std::shared_ptr<Permit> permit_;  // until the answer is sent
  std::shared_ptr<Cancellation> cancelled_;
};

}  // namespace linnet::server
