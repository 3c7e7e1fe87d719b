// What every call has in common: its deadline and headers, how it is cancelled, the first contact
// with the server, and errors that say what they mean.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/library/cancellation.h"
#include "client/library/client.h"
#include "client/library/grpc_status.h"
#include "client/library/request_checks.h"
#include "client/library/token_file.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/admin_service.grpc.pb.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {

// A call while gRPC has it: can be cancelled by the client's Cancellation and by its own.
class CallContext {
 public:
  CallContext(const Cancellation& client, const CallOptions& options);
  ~CallContext();

  grpc::ClientContext& grpc() { return grpc_; }
  // False if it was cancelled before it began.
  bool begun() const { return begun_; }
  bool cancelled() const;
  std::optional<absl::Duration> timeout() const { return timeout_; }

 private:
  const Cancellation client_;
  const std::optional<Cancellation> own_;
  const std::optional<absl::Duration> timeout_;  // that the call has for itself
  grpc::ClientContext grpc_;
  bool begun_ = true;
};

// Thread-safe.
class Connection {
 public:
  using Text = v1::TextService::Stub;
  using HealthRequest = grpc::health::v1::HealthCheckRequest;
  using HealthResponse = grpc::health::v1::HealthCheckResponse;

  // `token` may be null.
  Connection(const ClientOptions& options, std::unique_ptr<TokenFile> token);
  // Cancels what is asynchronous and waits for its end.
  ~Connection();

  const ClientOptions& options() const { return options_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  void Cancel() { cancellation_.Cancel(); }
  bool cancelled() const { return cancellation_.state()->cancelled(); }

  // Runs `call(stub, context)`, which blocks and returns a grpc::Status, if `request` may be sent.
  // Without `deadline`, the call ends by itself or by being cancelled.
  template <typename Call>
  absl::Status Run(const google::protobuf::Message& request, const CallOptions& options, Call call,
                   bool deadline = true) {
    absl::Status status = CheckRequest(request, options);
    if (status.ok()) status = Reach(options);
    if (!status.ok()) return status;
    const CallOptions own = WithRequestId(options);
    const Timeout timeout(deadline ? own.timeout.value_or(options_.timeout)
                                   : absl::InfiniteDuration());
    status = Try(own, timeout.left(), call);
    if (IsForAnother(status) && timeout.left() > absl::ZeroDuration())
      status = Try(own, timeout.left(), call);
    return status;
  }

  // A call with one answer; `method` is the stub's.
  template <typename Request, typename Response>
  using Method = grpc::Status (Text::*)(grpc::ClientContext*, const Request&, Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Unary(Method<Request, Response> method, const Request& request,
                                 const CallOptions& options) {
    Response response;
    const absl::Status status =
        Run(request, options, [&](Text& text, grpc::ClientContext* context) {
          return (text.*method)(context, request, &response);
        });
    if (!status.ok()) return status;
    return response;
  }

  // The same without waiting. `start(stub, context, request, response, done)` begins the call.
  template <typename Request, typename Response, typename Start>
  void Async(Request request, const CallOptions& options, Start start, OnDone<Response> on_done);

  // Asks the health service. `response` is filled if OK is returned.
  absl::Status Check(const CallOptions& options, const std::string& service,
                     HealthResponse* response);

 private:
  // What is left of a call's time.
  class Timeout {
   public:
    explicit Timeout(absl::Duration whole) : whole_(whole) {}
    absl::Duration left() const {
      return whole_ - absl::FromChrono(std::chrono::steady_clock::now() - begun_);
    }

   private:
    const absl::Duration whole_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  };

  template <typename Call>
  absl::Status Try(const CallOptions& options, absl::Duration timeout, Call& call) {
    CallContext context(cancellation_, options);
    Prepare(options, timeout, &context.grpc());
    if (!context.begun()) return absl::CancelledError("cancelled before the call");
    return Explain(context, call(*text_, &context.grpc()));
  }
  // One of several servers has too much to do before the deadline, and has done nothing: the next
  // in turn may have less. To be asked once, or all of them would be asked for what none can do.
  bool IsForAnother(const absl::Status& status) const;
  // With a request id of its own where it has none, so that all attempts have the same.
  static CallOptions WithRequestId(const CallOptions& options);

  absl::Status CheckRequest(const google::protobuf::Message& request,
                            const CallOptions& options) const;
  void Prepare(const CallOptions& options, absl::Duration timeout, grpc::ClientContext* context);
  absl::Status Explain(const CallContext& context, const grpc::Status& status) const;

  // What an asynchronous call keeps until its end.
  template <typename Request, typename Response, typename Start>
  struct AsyncCall {
    Request request;
    CallOptions options;
    Start start;
    OnDone<Response> on_done;
    Response response = {};
    std::unique_ptr<CallContext> context = nullptr;
    std::optional<Timeout> timeout = std::nullopt;
    bool again = false;
  };
  template <typename Request, typename Response, typename Start>
  void Send(std::shared_ptr<AsyncCall<Request, Response, Start>> call);
  template <typename Call, typename Result>
  void End(Call& call, Result result) {
    call.on_done(std::move(result));
    Ended();
  }

  // gRPC makes its retries for TextService alone: so a refused connection comes out here at once,
  // while a server that has answered once is asked again.
  absl::Status Reach(const CallOptions& options);
  // OK once the server has said anything at all.
  absl::Status Reached(const absl::Status& health);

  // The contacts one after the other that Reach makes: at first, where that is allowed, one that
  // waits.
  struct Contact {
    absl::Duration timeout;
    bool wait_for_ready;
  };
  Contact FirstContact() const;
  void ReachAsync(const CallOptions& options, Contact contact,
                  std::function<void(absl::Status)> then);

  void Begun() {
    absl::MutexLock lock(&mu_);
    ++in_flight_;
  }
  void Ended() {
    absl::MutexLock lock(&mu_);
    --in_flight_;
  }

  const ClientOptions options_;
  const std::unique_ptr<TokenFile> token_;
  const Cancellation cancellation_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<grpc::Channel> health_channel_;  // `channel_`, where that is not balanced
  const std::unique_ptr<Text> text_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
  std::atomic<bool> reached_ = false;

  absl::Mutex mu_;
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;  // asynchronous calls
};

template <typename Request, typename Response, typename Start>
void Connection::Async(Request request, const CallOptions& options, Start start,
                       OnDone<Response> on_done) {
  if (absl::Status status = CheckRequest(request, options); !status.ok()) return on_done(status);
  using Call = AsyncCall<Request, Response, Start>;
  std::shared_ptr<Call> call(
      new Call{std::move(request), WithRequestId(options), std::move(start), std::move(on_done)});
  Begun();
  const auto send = [this, call](absl::Status reached) {
    if (!reached.ok()) return End(*call, std::move(reached));
    call->timeout.emplace(call->options.timeout.value_or(options_.timeout));
    Send(call);
  };
  if (reached_) return send(absl::OkStatus());
  ReachAsync(call->options, FirstContact(), send);
}

template <typename Request, typename Response, typename Start>
void Connection::Send(std::shared_ptr<AsyncCall<Request, Response, Start>> call) {
  call->context = std::make_unique<CallContext>(cancellation_, call->options);
  Prepare(call->options, call->timeout->left(), &call->context->grpc());
  if (!call->context->begun()) return End(*call, absl::CancelledError("cancelled before the call"));
  call->start(*text_, &call->context->grpc(), call->request, &call->response,
              [this, call](grpc::Status status) {
                absl::Status explained = Explain(*call->context, status);
                call->context.reset();
                if (!std::exchange(call->again, true) && IsForAnother(explained) &&
                    call->timeout->left() > absl::ZeroDuration()) {
                  return Send(call);
                }
                if (!explained.ok()) return End(*call, std::move(explained));
                End(*call, std::move(call->response));
              });
}

}  // namespace linnet::client
