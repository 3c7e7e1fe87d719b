#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "server/rpc/single_request_call.h"

namespace linnet::server {

// A call with one request and one response.
template <typename Request, typename Response, typename Calls = TextCalls>
class UnaryCall final : public SingleRequestCall<Request, Response> {
 public:
  // Handles the request, now or later, and calls Done. If it throws, it has not called Done.
  using Start = void (*)(Calls&, const Request&, Response&, const CallContext&,
                         typename Calls::Done);

  UnaryCall(Calls& calls, Start start, const CallServices& services, Method method,
            grpc::CallbackServerContext& context)
      : SingleRequestCall<Request, Response>(services, method, context),
        calls_(calls),
        start_(start) {
    this->Read();
  }

 private:
  void Begin(const CallContext& context) override {
    try {
      start_(calls_, this->request_, this->response_, context,
             [this](absl::Status status) { End(std::move(status)); });
    } catch (...) {  // see OnReadDone
      LogException("call_failed");
      End(ErrorOfException());
    }
  }
  void End(absl::Status status) override {
    this->FinishWith(std::move(status), this->response_, this->request_);
  }

  Calls& calls_;
  const Start start_;
};

}  // namespace linnet::server
