#include "client/library/connection.h"

#include <chrono>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/library/channel.h"
#include "grpcpp/alarm.h"

namespace linnet::client {
namespace {

// Between the health checks of a wait. A proxy answers them at once while its server starts.
constexpr absl::Duration kWaitInterval = absl::Milliseconds(200);
// Bounds the check that finds out why no server was reached: a silent one does not tell.
constexpr absl::Duration kCauseTimeout = absl::Seconds(1);
constexpr size_t kMaxRetriedBytes = (4 << 20) + (64 << 10);  // more than a server takes by default

// Returns the operating system's error, which gRPC puts at the end of a long message about a failed
// connection.
absl::string_view Cause(absl::string_view message) {
  for (const absl::string_view prefix : {"Failed to connect to remote host: ",
                                         "connections to all backends failing; last error: "}) {
    const size_t begin = message.rfind(prefix);
    if (begin != absl::string_view::npos) message = message.substr(begin + prefix.size());
  }
  return message;
}

}  // namespace

void After(absl::Duration delay, std::function<void()> then) {
  auto* alarm = new grpc::Alarm;  // an alarm that its own callback owned would never be freed
  alarm->Set(absl::ToChronoTime(absl::Now() + delay), [alarm, then](bool) {
    const std::unique_ptr<grpc::Alarm> done(alarm);
    then();
  });
}

CancellableContext::CancellableContext(const Cancellation& client, const CallOptions& options)
    : client_(client), own_(options.cancellation), timeout_(options.timeout) {
  begun_ = client_.state()->Add(&grpc_) && (!own_.has_value() || own_->state()->Add(&grpc_));
}

CancellableContext::~CancellableContext() {
  client_.state()->Remove(&grpc_);
  if (own_.has_value()) own_->state()->Remove(&grpc_);
}

bool CancellableContext::cancelled() const {
  return client_.state()->cancelled() || (own_.has_value() && own_->state()->cancelled());
}

Connection::Connection(const ClientOptions& options, std::unique_ptr<TokenFile> token)
    : options_(options),
      proxy_(FindProxy(options.server)),
      token_(std::move(token)),
      channel_(MakeChannel(options)),
      health_channel_(IsBalanced(options) ? MakeHealthChannel(options) : channel_),
      text_(v1::TextService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)),
      health_(grpc::health::v1::Health::NewStub(health_channel_)) {}

Connection::~Connection() {
  absl::MutexLock lock(&mu_);
  if (in_flight_ == 0) return;
  Cancel();
  const auto all_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return in_flight_ == 0; };
  mu_.Await(absl::Condition(&all_ended));
}

absl::Status Connection::CheckRequest(const google::protobuf::Message& request,
                                      const CallOptions& options) const {
  absl::Status status = CheckStrings(request);
  status.Update(CheckRequestId(options.request_id));
  return status;
}

CallOptions Connection::WithRequestId(const CallOptions& options) {
  if (!options.request_id.empty()) return options;
  thread_local std::mt19937_64 random(std::random_device{}());
  CallOptions own = options;
  own.request_id =
      absl::StrCat(absl::Hex(random(), absl::kZeroPad16), absl::Hex(random(), absl::kZeroPad16));
  return own;
}

Attempts Connection::MakeAttempts(Attempts::Kind kind, const google::protobuf::Message& request,
                                  const CallOptions& options) {
  // A larger request is refused for good, with a code as if a retry could help.
  if (request.ByteSizeLong() > kMaxRetriedBytes) kind = Attempts::Kind::kOnce;
  return Attempts(kind, options_, retries_, TimeoutOf(options));
}

bool Connection::IsCancelled(const CallOptions& options) const {
  return cancellation_.state()->cancelled() ||
         (options.cancellation.has_value() && options.cancellation->state()->cancelled());
}

bool Connection::Pause(const CallOptions& options, absl::Duration delay,
                       bool until_connected) const {
  const absl::Time end = absl::Now() + delay;
  while (!IsCancelled(options)) {
    const absl::Duration left = end - absl::Now();
    // While no call is in flight, gRPC connects only in a thread that waits for the channel.
    const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
    if (left <= absl::ZeroDuration() || (until_connected && state == GRPC_CHANNEL_READY))
      return true;
    channel_->WaitForStateChange(state,
                                 absl::ToChronoTime(absl::Now() + std::min(left, kPauseSlice)));
  }
  return false;
}

void Connection::Prepare(const CallOptions& options, absl::Duration timeout,
                         grpc::ClientContext* context) {
  if (timeout != absl::InfiniteDuration()) {
    context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
  }
  if (token_ != nullptr) context->AddMetadata("authorization", "Bearer " + token_->Token());
  if (!options.request_id.empty()) context->AddMetadata("x-request-id", options.request_id);
}

std::string Connection::ServerRoute() const {
  if (!proxy_) return options_.server;
  return absl::StrCat(options_.server, " through the proxy ", proxy_->address, " (",
                      proxy_->variable, ")");
}

// Replaces errors that gRPC made on this side by messages with the server and the way out.
absl::Status Connection::Explain(const CancellableContext& context, const grpc::Status& grpc,
                                 const google::protobuf::Message& request) const {
  const absl::Duration timeout = context.timeout().value_or(options_.timeout);
  absl::Status status = FromGrpc(grpc);
  if (absl::IsCancelled(status) && context.cancelled()) return absl::CancelledError("cancelled");
  if (status.ok() || HasDetails(status)) return status;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable: {
      // The message of round_robin if the health watch reports NOT_SERVING.
      if (absl::StrContains(status.message(), "backend unhealthy")) {
        return absl::UnavailableError(absl::StrCat(
            options_.server, " takes no calls now (its health is NOT_SERVING): try again later"));
      }
      absl::Status unreachable = absl::UnavailableError(absl::StrCat(
          "cannot reach ", ServerRoute(), ": ", Cause(status.message()),
          proxy_ ? absl::StrCat("; does the proxy let it pass? With no_proxy=",
                                ServerHost(options_.server), " the client connects directly")
          : UsesTls(options_.tls)
              ? "; is it there, with TLS and a certificate for its name that is trusted here?"
              : "; is a Linnet server running there, and without TLS?"));
      MarkUnsent(status.message(), &unreachable);
      return unreachable;
    }
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(absl::StrCat(
          "no answer from ", ServerRoute(), " within ", absl::FormatDuration(timeout), ": ",
          request.GetDescriptor() == HealthRequest::descriptor()
              ? "it hangs, or does not speak gRPC"
              : "allow more time or send less text"));
    case absl::StatusCode::kUnimplemented:
      if (request.GetDescriptor() == v1::ReloadRequest::descriptor()) {
        return absl::UnimplementedError(absl::StrCat(
            options_.server,
            " takes no calls of administrators: use the address for them (linnet-server "
            "--admin-listen), or a token with the right to administer"));
      }
      return absl::UnimplementedError(absl::StrCat(
          options_.server, " is not a Linnet server of this version: ",
          status.message().empty() ? "it does not know the method" : status.message()));
    case absl::StatusCode::kResourceExhausted:
      return NameTooLarge(status, options_.max_reply_bytes, request.ByteSizeLong());
    default:
      return status;
  }
}

absl::Status Connection::Reached(const absl::Status& health) {
  // NOT_SERVING counts as reached: the call itself then returns the server's error.
  if (!absl::IsUnavailable(health) && !absl::IsDeadlineExceeded(health) &&
      !absl::IsCancelled(health)) {
    retries_.SetReached();
  }
  return retries_.reached() ? absl::OkStatus() : health;
}

absl::Status Connection::Reach(const CallOptions& options, absl::Duration left) {
  if (retries_.reached()) return absl::OkStatus();
  HealthResponse ignored;
  return Reached(Check(options, std::min(left, TimeoutOf(options)), "", &ignored));
}

Connection::Contact Connection::FirstContact(absl::Duration left) const {
  if (WaitsForServer()) return {options_.wait, true};
  return {left, false};
}

std::optional<Connection::Contact> Connection::CheckAgain(const Contact& contact, absl::Time end,
                                                          const absl::Status& status) {
  const absl::Duration left = end - absl::Now() - kWaitInterval;
  if (!contact.wait_for_ready || !absl::IsUnavailable(status) || left <= absl::ZeroDuration())
    return std::nullopt;
  return Contact{left, true};
}

absl::Status Connection::Check(const CallOptions& options, absl::Duration timeout,
                               const std::string& service, HealthResponse* response) {
  HealthRequest request;
  request.set_service(service);
  const auto check = [&](Contact contact) -> absl::Status {
    CancellableContext context(cancellation_, options);
    Prepare(options, contact.timeout, &context.grpc());
    context.grpc().set_wait_for_ready(contact.wait_for_ready);
    if (!context.begun()) return absl::CancelledError("cancelled before the call");
    return Explain(context, health_->Check(&context.grpc(), request, response), request);
  };
  const Contact first = retries_.reached() ? Contact{timeout, false} : FirstContact(timeout);
  const absl::Time end = absl::Now() + first.timeout;
  absl::Status status = check(first);
  while (const std::optional<Contact> again = CheckAgain(first, end, status)) {
    absl::SleepFor(kWaitInterval);
    status = check(*again);
  }
  // After wait_for_ready the status lacks the cause; a check that fails fast returns it.
  if (first.wait_for_ready && absl::IsDeadlineExceeded(status)) {
    const absl::Status cause = check({std::min(TimeoutOf(options), kCauseTimeout), false});
    if (!absl::IsDeadlineExceeded(cause)) status = cause;
  }
  (void)Reached(status);
  return status;
}

void Connection::ReachAsync(const CallOptions& options, Contact contact,
                            std::function<void(absl::Status)> then) {
  struct Probe {
    CancellableContext context;
    HealthRequest request;
    HealthResponse response;
  };
  auto probe = std::shared_ptr<Probe>(new Probe{{cancellation_, options}, {}, {}});
  Prepare(options, contact.timeout, &probe->context.grpc());
  probe->context.grpc().set_wait_for_ready(contact.wait_for_ready);
  if (!probe->context.begun()) return then(absl::CancelledError("cancelled before the call"));
  health_->async()->Check(
      &probe->context.grpc(), &probe->request, &probe->response,
      [this, probe, options, contact, then,
       end = absl::Now() + contact.timeout](grpc::Status answer) {
        const absl::Status status = Explain(probe->context, answer, probe->request);
        if (contact.wait_for_ready && absl::IsDeadlineExceeded(status)) {
          return ReachAsync(options, {std::min(TimeoutOf(options), kCauseTimeout), false},
                            [then, status](const absl::Status& cause) {
                              then(absl::IsDeadlineExceeded(cause) ? status : cause);
                            });
        }
        if (const std::optional<Contact> again = CheckAgain(contact, end, status)) {
          return After(kWaitInterval, [=, this] { ReachAsync(options, *again, then); });
        }
        then(Reached(status));
      });
}

}  // namespace linnet::client
