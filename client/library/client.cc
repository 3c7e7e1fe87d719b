#include "client/library/client.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/library/channel.h"
#include "client/library/connection.h"
#include "client/library/document.h"
#include "client/library/utf8.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

using v1::TextService;
using Text = TextService::Stub;
using HealthResponse = Connection::HealthResponse;
using Progress = Connection::Progress;

int TextsOf(const v1::TranslateRequest& request) { return request.contents_size(); }
int TextsOf(const v1::SummarizeRequest& request) { return request.contents_size(); }
int TextsOf(const v1::ScoreRequest& request) { return request.pairs_size(); }
int TextsOf(const v1::DetectLanguageRequest& request) { return request.contents_size(); }
int AnswersOf(const v1::TranslateResponse& response) { return response.translations_size(); }
int AnswersOf(const v1::SummarizeResponse& response) { return response.summaries_size(); }
int AnswersOf(const v1::ScoreResponse& response) { return response.scores_size(); }
int AnswersOf(const v1::DetectLanguageResponse& response) { return response.detections_size(); }

// INTERNAL if the number of answers differs from that of the texts: callers match them by index.
template <typename Response>
absl::StatusOr<Response> WithCount(int texts, absl::StatusOr<Response>&& response) {
  if (!response.ok() || AnswersOf(*response) == texts) return std::move(response);
  return absl::InternalError(absl::StrCat("the server answered ", texts, " texts with ",
                                          AnswersOf(*response), " results"));
}

// Hands parts on until the response arrives, which is the last message. `begun` is set by the first
// message.
template <typename Message, typename Response>
grpc::Status ReadParts(std::unique_ptr<grpc::ClientReader<Message>> reader, const OnPart& on_part,
                       grpc::ClientContext* context, Response* response, bool* begun) {
  bool answered = false, wanted = true;
  for (Message message; reader->Read(&message);) {
    *begun = true;
    if (message.has_response()) {
      *response = std::move(*message.mutable_response());
      answered = true;
    } else if (wanted && message.has_part() && !on_part(message.part())) {
      wanted = false;
      context->TryCancel();
    }
  }
  const grpc::Status status = reader->Finish();
  if (status.ok() && !wanted) return {grpc::StatusCode::CANCELLED, "cancelled by the reader"};
  if (!status.ok() || answered) return status;
  return {grpc::StatusCode::INTERNAL, "the server ended the stream without its response"};
}

// Calls the streaming `method` of the stub with one request.
template <typename StreamRequest, typename Response, typename Request, typename Method>
absl::StatusOr<Response> Streamed(Connection& connection, Method method, const Request& request,
                                  const OnPart& on_part, const CallOptions& options) {
  StreamRequest stream_request;
  *stream_request.mutable_request() = request;
  absl::StatusOr<Response> response = Response();
  bool begun = false;
  const auto call = [&](Text& text, grpc::ClientContext* context) {
    return ReadParts((text.*method)(context, stream_request), on_part, context, &*response, &begun);
  };
  RETURN_IF_ERROR(connection.Run(Attempts::Kind::kCall, request, options, call,
                                 [&begun] { return begun ? Progress::kEnded : Progress::kNone; }));
  return WithCount(TextsOf(request), std::move(response));
}

template <typename Request, typename Response>
void Begin(Connection& connection,
           void (Text::async::*method)(grpc::ClientContext*, const Request*, Response*,
                                       std::function<void(grpc::Status)>),
           Request request, OnDone<Response> on_done, const CallOptions& options) {
  const int texts = TextsOf(request);
  const auto start = [method](Text& text, grpc::ClientContext* context, const Request& sent,
                              Response* response, std::function<void(grpc::Status)> done) {
    (text.async()->*method)(context, &sent, response, std::move(done));
  };
  connection.Async<Request, Response>(
      std::move(request), options, start,
      [texts, on_done = std::move(on_done)](absl::StatusOr<Response> response) {
        on_done(WithCount(texts, std::move(response)));
      });
}

template <typename Lines, typename Result, typename Settings, typename Method, typename Response>
absl::Status RunDocument(Connection& connection, Method method, const Settings& settings,
                         const NextLine& next_line, const OnLine<Response>& on_line,
                         const CallOptions& options) {
  const OnLine<Response> on_counted = [&on_line](int64_t index,
                                                 const absl::StatusOr<Response>& result) {
    if (!result.ok() || AnswersOf(*result) == 1) return on_line(index, result);
    return on_line(index, WithCount(1, absl::StatusOr<Response>(result)));
  };
  Document<Lines, Result> document(settings, next_line, on_counted, connection.TimeoutOf(options));
  const auto call = [&](Text& text, grpc::ClientContext* context) {
    return document.Run((text.*method)(context), context);
  };
  return connection.Run(Attempts::Kind::kDocument, settings, options, call, [&document] {
    if (document.refused()) return Progress::kEnded;
    return document.TakeProgress() ? Progress::kSome : Progress::kNone;
  });
}

}  // namespace

class Client::Impl : public Connection {
 public:
  using Connection::Connection;
};

absl::StatusOr<Client> Client::Create(const ClientOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<TokenFile> token;
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(token, TokenFile::Open(options.token_file));
  }
  return Client(std::make_unique<Impl>(options, std::move(token)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

absl::StatusOr<v1::TranslateResponse> Client::Translate(const v1::TranslateRequest& request,
                                                        const CallOptions& options) {
  return WithCount(TextsOf(request), impl_->Unary(&Text::Translate, request, options));
}

absl::StatusOr<v1::SummarizeResponse> Client::Summarize(const v1::SummarizeRequest& request,
                                                        const CallOptions& options) {
  return WithCount(TextsOf(request), impl_->Unary(&Text::Summarize, request, options));
}

absl::StatusOr<v1::ScoreResponse> Client::Score(const v1::ScoreRequest& request,
                                                const CallOptions& options) {
  return WithCount(TextsOf(request), impl_->Unary(&Text::Score, request, options));
}

absl::StatusOr<v1::DetectLanguageResponse> Client::DetectLanguage(
    const v1::DetectLanguageRequest& request, const CallOptions& options) {
  return WithCount(TextsOf(request), impl_->Unary(&Text::DetectLanguage, request, options));
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels(const CallOptions& options) {
  return impl_->Unary(&Text::ListModels, v1::ListModelsRequest(), options);
}

absl::StatusOr<v1::GetModelResponse> Client::GetModel(const v1::GetModelRequest& request,
                                                      const CallOptions& options) {
  return impl_->Unary(&Text::GetModel, request, options);
}

absl::StatusOr<v1::TranslateResponse> Client::StreamTranslate(const v1::TranslateRequest& request,
                                                              const OnPart& on_part,
                                                              const CallOptions& options) {
  return Streamed<v1::StreamTranslateRequest, v1::TranslateResponse>(*impl_, &Text::StreamTranslate,
                                                                     request, on_part, options);
}

absl::StatusOr<v1::SummarizeResponse> Client::StreamSummarize(const v1::SummarizeRequest& request,
                                                              const OnPart& on_part,
                                                              const CallOptions& options) {
  return Streamed<v1::StreamSummarizeRequest, v1::SummarizeResponse>(*impl_, &Text::StreamSummarize,
                                                                     request, on_part, options);
}

absl::Status Client::TranslateDocument(const v1::TranslateRequest& settings,
                                       const NextLine& next_line,
                                       const OnLine<v1::TranslateResponse>& on_line,
                                       const CallOptions& options) {
  return RunDocument<v1::TranslateDocumentRequest, v1::TranslateDocumentResponse>(
      *impl_, &Text::TranslateDocument, settings, next_line, on_line, options);
}

absl::Status Client::SummarizeDocument(const v1::SummarizeRequest& settings,
                                       const NextLine& next_line,
                                       const OnLine<v1::SummarizeResponse>& on_line,
                                       const CallOptions& options) {
  return RunDocument<v1::SummarizeDocumentRequest, v1::SummarizeDocumentResponse>(
      *impl_, &Text::SummarizeDocument, settings, next_line, on_line, options);
}

void Client::TranslateAsync(v1::TranslateRequest request, OnDone<v1::TranslateResponse> on_done,
                            const CallOptions& options) {
  Begin(*impl_, &Text::async::Translate, std::move(request), std::move(on_done), options);
}

void Client::SummarizeAsync(v1::SummarizeRequest request, OnDone<v1::SummarizeResponse> on_done,
                            const CallOptions& options) {
  Begin(*impl_, &Text::async::Summarize, std::move(request), std::move(on_done), options);
}

void Client::ScoreAsync(v1::ScoreRequest request, OnDone<v1::ScoreResponse> on_done,
                        const CallOptions& options) {
  Begin(*impl_, &Text::async::Score, std::move(request), std::move(on_done), options);
}

void Client::DetectLanguageAsync(v1::DetectLanguageRequest request,
                                 OnDone<v1::DetectLanguageResponse> on_done,
                                 const CallOptions& options) {
  Begin(*impl_, &Text::async::DetectLanguage, std::move(request), std::move(on_done), options);
}

absl::StatusOr<v1::ReloadResponse> Client::Reload(const v1::ReloadRequest& request,
                                                  const CallOptions& options) {
  v1::ReloadResponse response;
  const auto call = [&](Text&, grpc::ClientContext* context) {
    return impl_->admin().Reload(context, request, &response);
  };
  RETURN_IF_ERROR(impl_->Run(Attempts::Kind::kOnce, request, options, call));
  return response;
}

absl::Status Client::Health(const std::string& service) {
  RETURN_IF_ERROR(CheckUtf8("service", service));
  HealthResponse response;
  const absl::Status status = impl_->Check({}, impl_->options().timeout, service, &response);
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(absl::StrCat("the server has no service \"", service, "\""));
  }
  RETURN_IF_ERROR(status);
  if (response.status() == HealthResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(service.empty() ? std::string("the server") : service, " says ",
                   HealthResponse::ServingStatus_Name(response.status())));
}

void Client::Cancel() { impl_->Cancel(); }

std::string Version() { return LINNET_VERSION; }

}  // namespace linnet::client
