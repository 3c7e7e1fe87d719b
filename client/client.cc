#include "client/client.h"

#include <atomic>
#include <chrono>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/grpc_status.h"
#include "client/utf8.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {
namespace {

using v1::TextService;

absl::Status CheckServer(const std::string& server) {
  for (absl::string_view scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:"}) {
    if (absl::StartsWith(server, scheme)) return absl::OkStatus();  // gRPC checks the rest
  }
  const size_t colon = server.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(server.substr(colon + 1), &port) || port < 1 || port > 65535 ||
      (server.find(':') != colon && server[0] != '[')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server \"", server,
        "\" is not HOST:PORT with a port of 1 to 65535, as in 127.0.0.1:50051 or [::1]:50051"));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const ClientOptions& options) {
  if (absl::Status status = CheckServer(options.server); !status.ok()) return status;
  if (options.timeout <= absl::ZeroDuration() || options.timeout > absl::Hours(24)) {
    return absl::InvalidArgumentError(absl::StrCat("timeout is ",
                                                   absl::FormatDuration(options.timeout),
                                                   ", it must be above 0 and at most 24h"));
  }
  if (options.wait < absl::ZeroDuration() || options.wait > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait is ", absl::FormatDuration(options.wait), ", it must be from 0 to 24h"));
  }
  const RetryOptions& retry = options.retry;
  if (retry.max_attempts < 1 || retry.max_attempts > 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_attempts ", retry.max_attempts, " is not 1 to 5"));
  }
  if (retry.initial_backoff < absl::Milliseconds(1) || retry.max_backoff < retry.initial_backoff) {
    return absl::InvalidArgumentError(absl::StrCat(
        "back-off from ", absl::FormatDuration(retry.initial_backoff), " to ",
        absl::FormatDuration(retry.max_backoff), " does not go upwards from 1ms or more"));
  }
  if (options.max_reply_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_reply_bytes ", options.max_reply_bytes, " is not at least 1"));
  }
  return absl::OkStatus();
}

// The retries of TextService's calls, done by gRPC: it knows which calls did not reach the server
// and obeys the server's wish of when to come back (grpc-retry-pushback-ms). The throttle stops
// retries while most calls fail. https://github.com/grpc/proposal/blob/master/A6-client-retries.md
std::string ServiceConfig(const RetryOptions& retry) {
  if (retry.max_attempts == 1) return "{}";
  return absl::StrFormat(R"({
    "methodConfig": [{
      "name": [{"service": "%s"}],
      "retryPolicy": {
        "maxAttempts": %d,
        "initialBackoff": "%.3fs",
        "maxBackoff": "%.3fs",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
      }
    }],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
  })",
                         TextService::service_full_name(), retry.max_attempts,
                         absl::ToDoubleSeconds(retry.initial_backoff),
                         absl::ToDoubleSeconds(retry.max_backoff));
}

bool IsThisMachine(const std::string& server) {
  return absl::StartsWith(server, "localhost:") || absl::StartsWith(server, "127.") ||
         absl::StartsWith(server, "[::1]:");
}

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(ServiceConfig(options.retry));
  arguments.SetUserAgentPrefix("linnet/" + Version());
  arguments.SetMaxReceiveMessageSize(options.max_reply_bytes);
  // gRPC waits 1 s before it connects again, so the first retries would all meet the first refusal;
  // and up to 2 min later on, far longer than a server needs to start.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(options.retry.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(options.retry.max_backoff));
  // Otherwise clients with equal options would share a connection behind our back.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Nobody means their http_proxy for a server on their own machine.
  if (IsThisMachine(options.server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.server, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status CheckUtf8Fields(const v1::TranslateRequest& request) {
  for (int i = 0; i < request.contents_size(); ++i) {
    absl::Status status = CheckUtf8(absl::StrCat("contents[", i, "]"), request.contents(i));
    if (!status.ok()) return status;
  }
  absl::Status status = CheckUtf8("source_language_code", request.source_language_code());
  status.Update(CheckUtf8("target_language_code", request.target_language_code()));
  status.Update(CheckUtf8("model", request.model()));
  status.Update(CheckUtf8("mime_type", request.mime_type()));
  return status;
}

absl::Status CheckUtf8Fields(const v1::SummarizeRequest& request) {
  for (int i = 0; i < request.contents_size(); ++i) {
    absl::Status status = CheckUtf8(absl::StrCat("contents[", i, "]"), request.contents(i));
    if (!status.ok()) return status;
  }
  absl::Status status = CheckUtf8("language_code", request.language_code());
  status.Update(CheckUtf8("model", request.model()));
  return status;
}

// Callers match texts and answers by their place.
absl::Status CheckCount(int texts, int answers) {
  if (texts == answers) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the server answered ", texts, " texts with ", answers, " results"));
}

}  // namespace

// gRPC tells the whole story of a connection that failed; what the system said of it comes last.
absl::string_view Cause(absl::string_view message) {
  constexpr absl::string_view kStory = "Failed to connect to remote host: ";
  const size_t story = message.rfind(kStory);
  return story == absl::string_view::npos ? message : message.substr(story + kStory.size());
}

using HealthCheckResponse = grpc::health::v1::HealthCheckResponse;

// Thread-safe: stubs and the channel are, and the calls under way stand under a lock.
class Client::Impl {
 public:
  explicit Impl(const ClientOptions& options)
      : options_(options),
        channel_(MakeChannel(options)),
        text_(TextService::NewStub(channel_)),
        health_(grpc::health::v1::Health::NewStub(channel_)) {}

  // Runs `call(stub, context)`, which blocks and returns a grpc::Status.
  template <typename Call>
  absl::Status RunText(Call call) {
    if (!reached_) {
      HealthCheckResponse ignored;  // a server that does not serve says so to the call as well
      const absl::Status status = Check("", &ignored);
      if (!reached_) return status;
    }
    return Run(options_.timeout, false,
               [&](grpc::ClientContext* context) { return call(*text_, context); });
  }

  // gRPC makes its retries for TextService alone: so a refused connection comes out here at once.
  absl::Status Check(const std::string& service, HealthCheckResponse* response) {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    const auto check = [&](grpc::ClientContext* context) {
      return health_->Check(context, request, response);
    };
    absl::Status status = absl::DeadlineExceededError("");
    if (!reached_ && options_.wait > absl::ZeroDuration()) {
      status = Run(options_.wait, /*wait_for_ready=*/true, check);
    }
    // A call that has waited in vain does not know why.
    if (absl::IsDeadlineExceeded(status)) status = Run(options_.timeout, false, check);
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) &&
        !absl::IsCancelled(status)) {
      reached_ = true;
    }
    return status;
  }

  void Cancel() {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    // Only marks the calls: nothing of ours runs in it, so the lock may be held, and it keeps the
    // contexts alive.
    for (grpc::ClientContext* context : under_way_) context->TryCancel();
  }

 private:
  // Runs `call(context)` with the deadline set and Cancel able to end it.
  template <typename Call>
  absl::Status Run(absl::Duration timeout, bool wait_for_ready, Call call) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
    context.set_wait_for_ready(wait_for_ready);
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_) return absl::CancelledError("cancelled before the call");
      under_way_.insert(&context);
    }
    const grpc::Status status = call(&context);
    absl::MutexLock lock(&mu_);
    under_way_.erase(&context);
    if (cancelled_ && status.error_code() == grpc::StatusCode::CANCELLED) {
      return absl::CancelledError("cancelled");
    }
    return Explain(FromGrpc(status));
  }

  // Says of errors that gRPC made on this side what they mean, with the server and the way out.
  absl::Status Explain(const absl::Status& status) const {
    if (status.ok() || HasDetails(status)) return status;
    switch (status.code()) {
      case absl::StatusCode::kUnavailable:
        return absl::UnavailableError(absl::StrCat("cannot reach ", options_.server, ": ",
                                                   Cause(status.message()),
                                                   "; is a Linnet server running there?"));
      case absl::StatusCode::kDeadlineExceeded:
        return absl::DeadlineExceededError(absl::StrCat(
            "no answer from ", options_.server, " within ", absl::FormatDuration(options_.timeout),
            ": allow more time or send less text"));
      case absl::StatusCode::kUnimplemented:
        return absl::UnimplementedError(absl::StrCat(
            options_.server, " is not a Linnet server of this version: ",
            status.message().empty() ? "it does not know the method" : status.message()));
      default:
        return status;
    }
  }

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<TextService::Stub> text_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
  std::atomic<bool> reached_ = false;  // a server has answered once: from then on calls are retried

  absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::unordered_set<grpc::ClientContext*> under_way_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<Client> Client::Create(const ClientOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  return Client(std::make_unique<Impl>(options));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

absl::StatusOr<v1::TranslateResponse> Client::Translate(const v1::TranslateRequest& request) {
  absl::Status status = CheckUtf8Fields(request);
  v1::TranslateResponse response;
  if (status.ok()) {
    status = impl_->RunText([&](TextService::Stub& text, grpc::ClientContext* context) {
      return text.Translate(context, request, &response);
    });
  }
  if (!status.ok()) return status;
  status = CheckCount(request.contents_size(), response.translations_size());
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::SummarizeResponse> Client::Summarize(const v1::SummarizeRequest& request) {
  absl::Status status = CheckUtf8Fields(request);
  v1::SummarizeResponse response;
  if (status.ok()) {
    status = impl_->RunText([&](TextService::Stub& text, grpc::ClientContext* context) {
      return text.Summarize(context, request, &response);
    });
  }
  if (!status.ok()) return status;
  status = CheckCount(request.contents_size(), response.summaries_size());
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels() {
  v1::ListModelsResponse response;
  absl::Status status = impl_->RunText([&](TextService::Stub& text, grpc::ClientContext* context) {
    return text.ListModels(context, v1::ListModelsRequest(), &response);
  });
  if (!status.ok()) return status;
  return response;
}

absl::Status Client::Health(const std::string& service) {
  if (absl::Status status = CheckUtf8("service", service); !status.ok()) return status;
  HealthCheckResponse response;
  const absl::Status status = impl_->Check(service, &response);
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(absl::StrCat("the server has no service \"", service, "\""));
  }
  if (!status.ok()) return status;
  if (response.status() == HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(service.empty() ? std::string("the server") : service, " says ",
                   HealthCheckResponse::ServingStatus_Name(response.status())));
}

void Client::Cancel() { impl_->Cancel(); }

std::string Version() { return LINNET_VERSION; }

}  // namespace linnet::client
