// Functions common to all calls: deadline, headers, cancellation, the first contact with the server
// and readable errors.
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
#include "client/library/proxy.h"
#include "client/library/request_checks.h"
#include "client/library/token_file.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/admin_service.grpc.pb.h"
#include "linnet/v1/text_service.grpc.pb.h"
#include "proto/status_macros.h"

namespace linnet::client {

// The gRPC context of a call in flight. The client's Cancellation and the call's own one cancel it.
class CancellableContext {
 public:
  CancellableContext(const Cancellation& client, const CallOptions& options);
  ~CancellableContext();

  grpc::ClientContext& grpc() { return grpc_; }
  // False if the call was cancelled before it began.
  bool begun() const { return begun_; }
  bool cancelled() const;
  std::optional<absl::Duration> timeout() const { return timeout_; }

 private:
  const Cancellation client_;
  const std::optional<Cancellation> own_;
  const std::optional<absl::Duration> timeout_;  // of CallOptions
  grpc::ClientContext grpc_;
  bool begun_ = true;
};

// The implementation of Client: channels, stubs and the calls over them. Thread-safe.
class Connection {
 public:
  using Text = v1::TextService::Stub;
  using HealthRequest = grpc::health::v1::HealthCheckRequest;
  using HealthResponse = grpc::health::v1::HealthCheckResponse;

  // `token` may be null.
  Connection(const ClientOptions& options, std::unique_ptr<TokenFile> token);
  // Cancels asynchronous calls and waits for their end.
  ~Connection();

  const ClientOptions& options() const { return options_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  void Cancel() { cancellation_.Cancel(); }

  // Runs `call(stub, context)`, which blocks and returns a grpc::Status, if `request` is valid.
  // Without `deadline` the call has no gRPC deadline.
  template <typename Call>
  absl::Status Run(const google::protobuf::Message& request, const CallOptions& options, Call call,
                   bool deadline = true) {
    RETURN_IF_ERROR(CheckRequest(request, options));
    const CallOptions own = WithRequestId(options);
    const absl::Duration whole = deadline ? TimeoutOf(own) : absl::InfiniteDuration();
    Timeout timeout(whole);
    RETURN_IF_ERROR(Reach(own));
    if (WaitsForServer()) timeout = Timeout(whole);
    absl::Status status = Try(own, timeout.left(), request, call);
    if (ShouldTryAnotherServer(status) && timeout.left() > absl::ZeroDuration())
      status = Try(own, timeout.left(), request, call);
    return status;
  }

  // Runs a unary call; `method` is the stub's.
  template <typename Request, typename Response>
  using Method = grpc::Status (Text::*)(grpc::ClientContext*, const Request&, Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Unary(Method<Request, Response> method, const Request& request,
                                 const CallOptions& options) {
    Response response;
    RETURN_IF_ERROR(Run(request, options, [&](Text& text, grpc::ClientContext* context) {
      return (text.*method)(context, request, &response);
    }));
    return response;
  }

  // The asynchronous variant. `start(stub, context, request, response, done)` starts the call.
  template <typename Request, typename Response, typename Start>
  void Async(Request request, const CallOptions& options, Start start, OnDone<Response> on_done);

  // Calls the health service. Fills `response` if it returns OK.
  absl::Status Check(const CallOptions& options, const std::string& service,
                     HealthResponse* response);

 private:
  // The timeout of a call, counted from construction.
  class Timeout {
   public:
    explicit Timeout(absl::Duration whole) : whole_(whole) {}
    absl::Duration left() const {
      return whole_ - absl::FromChrono(std::chrono::steady_clock::now() - begun_);
    }

   private:
    absl::Duration whole_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  };

  template <typename Call>
  absl::Status Try(const CallOptions& options, absl::Duration timeout,
                   const google::protobuf::Message& request, Call& call) {
    CancellableContext context(cancellation_, options);
    Prepare(options, timeout, &context.grpc());
    if (!context.begun()) return absl::CancelledError("cancelled before the call");
    return Explain(context, call(*text_, &context.grpc()), request);
  }
  // The server, and the proxy before it, in the words of an error.
  std::string Way() const;
  // True if one of several servers refused the call because it cannot finish before the deadline:
  // the next server may have a shorter queue. Tried once, so that a deadline that no server can
  // meet does not load all of them.
  bool ShouldTryAnotherServer(const absl::Status& status) const;
  // Adds a request id if there is none, so that all attempts have the same.
  static CallOptions WithRequestId(const CallOptions& options);

  absl::Status CheckRequest(const google::protobuf::Message& request,
                            const CallOptions& options) const;
  void Prepare(const CallOptions& options, absl::Duration timeout, grpc::ClientContext* context);
  absl::Status Explain(const CancellableContext& context, const grpc::Status& status,
                       const google::protobuf::Message& request) const;

  // The state of an asynchronous call; it lives until the call ends.
  template <typename Request, typename Response, typename Start>
  struct AsyncCall {
    Request request;
    CallOptions options;
    Start start;
    OnDone<Response> on_done;
    Response response = {};
    std::unique_ptr<CancellableContext> context = nullptr;
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

  // Checks the server's health before the first call. gRPC retries only calls of TextService, so a
  // refused connection is reported here at once, while a server that has answered once is retried.
  absl::Status Reach(const CallOptions& options);
  // Returns OK once the server has answered anything at all.
  absl::Status Reached(const absl::Status& health);

  // One health check of Reach. The first one waits for the server if ClientOptions::wait allows it,
  // and is made again while a proxy says that the server is not there; otherwise it takes no longer
  // than the call may.
  struct Contact {
    absl::Duration timeout;
    bool wait_for_ready;
  };
  Contact FirstContact(const CallOptions& options) const;
  // Returns the rest of a wait if the answer to its health check came from a proxy without a
  // server.
  static std::optional<Contact> Again(const Contact& contact, absl::Time end,
                                      const absl::Status& status);
  // True if the first call waits for the server; the wait is no part of its timeout.
  bool WaitsForServer() const { return options_.wait > absl::ZeroDuration(); }
  absl::Duration TimeoutOf(const CallOptions& options) const {
    return options.timeout.value_or(options_.timeout);
  }
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
  const std::optional<Proxy> proxy_;  // of the channels; gRPC reads the environment only once
  const std::unique_ptr<TokenFile> token_;
  const Cancellation cancellation_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<grpc::Channel> health_channel_;  // `channel_` if it is not balanced
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
  call->timeout.emplace(TimeoutOf(call->options));
  const auto send = [this, call](absl::Status reached) {
    if (!reached.ok()) return End(*call, std::move(reached));
    if (WaitsForServer()) call->timeout.emplace(TimeoutOf(call->options));
    Send(call);
  };
  if (reached_) return send(absl::OkStatus());
  ReachAsync(call->options, FirstContact(call->options), send);
}

template <typename Request, typename Response, typename Start>
void Connection::Send(std::shared_ptr<AsyncCall<Request, Response, Start>> call) {
  call->context = std::make_unique<CancellableContext>(cancellation_, call->options);
  Prepare(call->options, call->timeout->left(), &call->context->grpc());
  if (!call->context->begun()) return End(*call, absl::CancelledError("cancelled before the call"));
  call->start(*text_, &call->context->grpc(), call->request, &call->response,
              [this, call](grpc::Status status) {
                absl::Status explained = Explain(*call->context, status, call->request);
                call->context.reset();
                if (!std::exchange(call->again, true) && ShouldTryAnotherServer(explained) &&
                    call->timeout->left() > absl::ZeroDuration()) {
                  return Send(call);
                }
                if (!explained.ok()) return End(*call, std::move(explained));
                End(*call, std::move(call->response));
              });
}

}  // namespace linnet::client
