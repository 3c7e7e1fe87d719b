#include "client/library/client.h"

#include <atomic>
#include <chrono>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/library/channel.h"
#include "client/library/grpc_status.h"
#include "client/library/request_checks.h"
#include "client/library/utf8.h"
#include "google/protobuf/message.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {
namespace {

using v1::TextService;

// Callers match texts and answers by their place.
template <typename Response>
absl::StatusOr<Response> WithCount(int texts, int answers, absl::StatusOr<Response>&& response) {
  if (texts == answers) return std::move(response);
  return absl::InternalError(
      absl::StrCat("the server answered ", texts, " texts with ", answers, " results"));
}

// Hands parts on until the response comes, which is the last message.
template <typename Message, typename Response>
grpc::Status ReadParts(std::unique_ptr<grpc::ClientReader<Message>> reader, const OnPart& on_part,
                       grpc::ClientContext* context, Response* response) {
  bool answered = false, wanted = true;
  for (Message message; reader->Read(&message);) {
    if (message.has_response()) {
      *response = std::move(*message.mutable_response());
      answered = true;
    } else if (wanted && message.has_part() && !on_part(message.part())) {
      wanted = false;
      context->TryCancel();
    }
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok() || answered) return status;
  return {grpc::StatusCode::INTERNAL, "the server ended the stream without its response"};
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

  // Sends `request` and runs `call(stub, context)`, which blocks and returns a grpc::Status.
  template <typename Call>
  absl::Status RunText(const google::protobuf::Message& request, const CallOptions& call_options,
                       Call call) {
    absl::Status status = CheckStrings(request);
    status.Update(CheckRequestId(call_options.request_id));
    if (!status.ok()) return status;
    if (!reached_) {
      HealthCheckResponse ignored;  // a server that does not serve says so to the call as well
      status = Check("", &ignored);
      if (!reached_) return status;
    }
    return Run(options_.timeout, false, [&](grpc::ClientContext* context) {
      if (!call_options.request_id.empty()) {
        context->AddMetadata("x-request-id", call_options.request_id);
      }
      return call(*text_, context);
    });
  }

  // A call with one answer; `method` is the stub's.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Unary(grpc::Status (TextService::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&,
                                                                           Response*),
                                 const Request& request, const CallOptions& options) {
    Response response;
    const absl::Status status =
        RunText(request, options, [&](TextService::Stub& text, grpc::ClientContext* context) {
          return (text.*method)(context, request, &response);
        });
    if (!status.ok()) return status;
    return response;
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

absl::StatusOr<v1::TranslateResponse> Client::Translate(const v1::TranslateRequest& request,
                                                        const CallOptions& options) {
  auto response = impl_->Unary(&TextService::Stub::Translate, request, options);
  if (!response.ok()) return response;
  return WithCount(request.contents_size(), response->translations_size(), std::move(response));
}

absl::StatusOr<v1::SummarizeResponse> Client::Summarize(const v1::SummarizeRequest& request,
                                                        const CallOptions& options) {
  auto response = impl_->Unary(&TextService::Stub::Summarize, request, options);
  if (!response.ok()) return response;
  return WithCount(request.contents_size(), response->summaries_size(), std::move(response));
}

absl::StatusOr<v1::ScoreResponse> Client::Score(const v1::ScoreRequest& request,
                                                const CallOptions& options) {
  auto response = impl_->Unary(&TextService::Stub::Score, request, options);
  if (!response.ok()) return response;
  return WithCount(request.pairs_size(), response->scores_size(), std::move(response));
}

absl::StatusOr<v1::DetectLanguageResponse> Client::DetectLanguage(
    const v1::DetectLanguageRequest& request, const CallOptions& options) {
  auto response = impl_->Unary(&TextService::Stub::DetectLanguage, request, options);
  if (!response.ok()) return response;
  return WithCount(request.contents_size(), response->detections_size(), std::move(response));
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels(const CallOptions& options) {
  return impl_->Unary(&TextService::Stub::ListModels, v1::ListModelsRequest(), options);
}

absl::StatusOr<v1::GetModelResponse> Client::GetModel(const v1::GetModelRequest& request,
                                                      const CallOptions& options) {
  return impl_->Unary(&TextService::Stub::GetModel, request, options);
}

absl::StatusOr<v1::TranslateResponse> Client::StreamTranslate(const v1::TranslateRequest& request,
                                                              const OnPart& on_part,
                                                              const CallOptions& options) {
  v1::StreamTranslateRequest stream_request;
  *stream_request.mutable_request() = request;
  v1::TranslateResponse response;
  const absl::Status status =
      impl_->RunText(request, options, [&](TextService::Stub& text, grpc::ClientContext* context) {
        return ReadParts(text.StreamTranslate(context, stream_request), on_part, context,
                         &response);
      });
  if (!status.ok()) return status;
  const int answers = response.translations_size();
  return WithCount<v1::TranslateResponse>(request.contents_size(), answers, std::move(response));
}

absl::StatusOr<v1::SummarizeResponse> Client::StreamSummarize(const v1::SummarizeRequest& request,
                                                              const OnPart& on_part,
                                                              const CallOptions& options) {
  v1::StreamSummarizeRequest stream_request;
  *stream_request.mutable_request() = request;
  v1::SummarizeResponse response;
  const absl::Status status =
      impl_->RunText(request, options, [&](TextService::Stub& text, grpc::ClientContext* context) {
        return ReadParts(text.StreamSummarize(context, stream_request), on_part, context,
                         &response);
      });
  if (!status.ok()) return status;
  const int answers = response.summaries_size();
  return WithCount<v1::SummarizeResponse>(request.contents_size(), answers, std::move(response));
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
