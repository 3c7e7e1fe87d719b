// Functions common to all calls: deadline, headers, cancellation, the first contact with the server
// and readable errors.
#pragma once

#include <algorithm>
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
#include "client/library/retries.h"
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

constexpr absl::Duration kPauseSlice = absl::Milliseconds(20);

// Calls `then` on a thread of gRPC.
void After(absl::Duration delay, std::function<void()> then);

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

  // Runs `call(stub, context)`, which blocks and returns a grpc::Status, if `request` is valid, and
  // again while `kind` allows it and `get_progress` does not return kEnded.
  enum class Progress { kNone, kSome, kEnded };
  template <typename Call, typename GetProgress>
  absl::Status Run(Attempts::Kind kind, const google::protobuf::Message& request,
                   const CallOptions& options, Call call, GetProgress get_progress) {
    RETURN_IF_ERROR(CheckRequest(request, options));
    const CallOptions own = WithRequestId(options);
    Attempts attempts = MakeAttempts(kind, request, own);
    bool waits = !retries_.reached() && WaitsForServer();
    while (true) {
      std::optional<absl::Duration> pushback;
      absl::Status status = Reach(own, attempts.left());
      if (status.ok()) {
        if (std::exchange(waits, false)) attempts.Restart();
        status = Try(own, attempts.left(), request, call, &pushback);
      }
      if (status.ok()) retries_.Succeeded();
      const Progress progress = get_progress();
      if (status.ok() || waits || progress == Progress::kEnded) return status;
      if (progress == Progress::kSome) attempts.Restart();
      const std::optional<absl::Duration> delay = attempts.DelayAfter(status, pushback);
      if (!delay.has_value()) return status;
      if (!Pause(own, *delay, IsUnsent(status))) return absl::CancelledError("cancelled");
    }
  }
  template <typename Call>
  absl::Status Run(Attempts::Kind kind, const google::protobuf::Message& request,
                   const CallOptions& options, Call call) {
    return Run(kind, request, options, std::move(call), [] { return Progress::kNone; });
  }

  // Runs a unary call; `method` is the stub's.
  template <typename Request, typename Response>
  using Method = grpc::Status (Text::*)(grpc::ClientContext*, const Request&, Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Unary(Method<Request, Response> method, const Request& request,
                                 const CallOptions& options) {
    Response response;
    const auto call = [&](Text& text, grpc::ClientContext* context) {
      return (text.*method)(context, request, &response);
    };
    RETURN_IF_ERROR(Run(Attempts::Kind::kCall, request, options, call));
    return response;
  }

  // The asynchronous variant. `start(stub, context, request, response, done)` starts the call.
  template <typename Request, typename Response, typename Start>
  void Async(Request request, const CallOptions& options, Start start, OnDone<Response> on_done);

  // Calls the health service. Fills `response` if it returns OK.
  absl::Status Check(const CallOptions& options, absl::Duration timeout, const std::string& service,
                     HealthResponse* response);
  absl::Duration TimeoutOf(const CallOptions& options) const {
    return options.timeout.value_or(options_.timeout);
  }

 private:
  template <typename Call>
  absl::Status Try(const CallOptions& options, absl::Duration timeout,
                   const google::protobuf::Message& request, Call& call,
                   std::optional<absl::Duration>* pushback) {
    CancellableContext context(cancellation_, options);
    Prepare(options, timeout, &context.grpc());
    if (!context.begun()) return absl::CancelledError("cancelled before the call");
    const grpc::Status status = call(*text_, &context.grpc());
    *pushback = Pushback(context.grpc());
    return Explain(context, status, request);
  }
  Attempts MakeAttempts(Attempts::Kind kind, const google::protobuf::Message& request,
                        const CallOptions& options);
  bool IsCancelled(const CallOptions& options) const;
  // Waits before the next attempt, or until there is a connection. Returns false if the call is
  // cancelled.
  bool Pause(const CallOptions& options, absl::Duration delay, bool until_connected) const;
  // The server, and the proxy before it, in the words of an error.
  std::string ServerRoute() const;
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
    Attempts attempts;
    std::unique_ptr<CancellableContext> context = nullptr;
  };
  template <typename Call>
  void Begin(std::shared_ptr<Call> call);
  template <typename Call>
  void Send(std::shared_ptr<Call> call);
  // Makes the call again after the delay, or ends it with `status`.
  template <typename Call>
  void RetryOrEnd(std::shared_ptr<Call> call, absl::Status status,
                  std::optional<absl::Duration> pushback);
  template <typename Call>
  void BeginLater(std::shared_ptr<Call> call, absl::Duration delay);
  template <typename Call, typename Result>
  void End(Call& call, Result result) {
    call.on_done(std::move(result));
    Ended();
  }

  // Checks the server's health before the first call, within the call's time.
  absl::Status Reach(const CallOptions& options, absl::Duration left);
  // Returns OK once the server has answered anything at all.
  absl::Status Reached(const absl::Status& health);

  // One health check of Reach. The first one waits for the server if ClientOptions::wait allows it,
  // and is made again while a proxy says that the server is not there; otherwise it takes no longer
  // than the call may.
  struct Contact {
    absl::Duration timeout;
    bool wait_for_ready;
  };
  Contact FirstContact(absl::Duration left) const;
  // Returns the rest of a wait if the answer to its health check came from a proxy without a
  // server.
  static std::optional<Contact> CheckAgain(const Contact& contact, absl::Time end,
                                           const absl::Status& status);
  // True if the first call waits for the server; the wait is no part of its timeout.
  bool WaitsForServer() const { return options_.wait > absl::ZeroDuration(); }
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
  Retries retries_;

  absl::Mutex mu_;
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;  // asynchronous calls
};

template <typename Request, typename Response, typename Start>
void Connection::Async(Request request, const CallOptions& options, Start start,
                       OnDone<Response> on_done) {
  if (absl::Status status = CheckRequest(request, options); !status.ok()) return on_done(status);
  using Call = AsyncCall<Request, Response, Start>;
  const CallOptions own = WithRequestId(options);
  const Attempts attempts = MakeAttempts(Attempts::Kind::kCall, request, own);
  Begun();
  Begin(std::shared_ptr<Call>(
      new Call{std::move(request), own, std::move(start), std::move(on_done), {}, attempts}));
}

template <typename Call>
void Connection::Begin(std::shared_ptr<Call> call) {
  if (retries_.reached()) return Send(std::move(call));
  ReachAsync(call->options, FirstContact(call->attempts.left()),
             [this, call](absl::Status reached) {
               if (reached.ok()) {
                 if (WaitsForServer()) call->attempts.Restart();
                 return Send(call);
               }
               if (WaitsForServer()) return End(*call, std::move(reached));
               RetryOrEnd(call, std::move(reached), std::nullopt);
             });
}

template <typename Call>
void Connection::Send(std::shared_ptr<Call> call) {
  call->context = std::make_unique<CancellableContext>(cancellation_, call->options);
  Prepare(call->options, call->attempts.left(), &call->context->grpc());
  if (!call->context->begun()) return End(*call, absl::CancelledError("cancelled before the call"));
  call->start(*text_, &call->context->grpc(), call->request, &call->response,
              [this, call](grpc::Status status) {
                absl::Status explained = Explain(*call->context, status, call->request);
                const std::optional<absl::Duration> pushback = Pushback(call->context->grpc());
                call->context.reset();
                if (!explained.ok()) return RetryOrEnd(call, std::move(explained), pushback);
                retries_.Succeeded();
                End(*call, std::move(call->response));
              });
}

template <typename Call>
void Connection::RetryOrEnd(std::shared_ptr<Call> call, absl::Status status,
                            std::optional<absl::Duration> pushback) {
  const std::optional<absl::Duration> delay = call->attempts.DelayAfter(status, pushback);
  if (!delay.has_value()) return End(*call, std::move(status));
  BeginLater(std::move(call), *delay);
}

template <typename Call>
void Connection::BeginLater(std::shared_ptr<Call> call, absl::Duration delay) {
  // In slices, after each of which a cancellation is seen.
  const absl::Duration slice = std::min(delay, kPauseSlice);
  After(slice, [this, call, left = delay - slice] {
    if (IsCancelled(call->options)) return End(*call, absl::CancelledError("cancelled"));
    if (left > absl::ZeroDuration()) return BeginLater(call, left);
    Begin(call);
  });
}

}  // namespace linnet::client
