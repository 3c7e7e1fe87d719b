#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {

// A TextService in this process, on a port of its own. Handlers that the test sets make its
// answers, and it records its requests. Without a handler it translates "A dog." to "[de] A dog."
// and summarises it to "[sum] A dog.", streams that character by character, scores a pair by the
// length of its target, and detects German in every text.
class FakeServer final : public v1::TextService::Service {
 public:
  template <typename Request, typename Response>
  using Handler =
      std::function<grpc::Status(grpc::ServerContext&, const Request&, Response& response)>;

  // Starts with health SERVING for the server and for TextService.
  explicit FakeServer(const std::string& address = "127.0.0.1:0");
  ~FakeServer() override;

  // "127.0.0.1:PORT"
  const std::string& address() const { return address_; }

  // Set before the first call.
  Handler<v1::TranslateRequest, v1::TranslateResponse> on_translate;
  Handler<v1::SummarizeRequest, v1::SummarizeResponse> on_summarize;
  Handler<v1::ScoreRequest, v1::ScoreResponse> on_score;
  Handler<v1::DetectLanguageRequest, v1::DetectLanguageResponse> on_detect;
  // Called after each part with the number of parts sent so far; a status other than OK ends the
  // stream.
  std::function<grpc::Status(grpc::ServerContext&, int parts)> after_part;
  // Returns the error of a line of a document, or OK for an answer as above. Without it, every line
  // is answered.
  std::function<grpc::Status(grpc::ServerContext&, const v1::DocumentLine&)> on_line;
  bool omits_lines = false;  // the results of a document's lines are empty
  // Called after the last result of a document, before its end.
  std::function<void(grpc::ServerContext&)> before_end;
  v1::ListModelsResponse models;

  void SetServing(const std::string& service, bool serving);

  std::vector<v1::TranslateRequest> translate_requests() const;
  std::vector<v1::SummarizeRequest> summarize_requests() const;
  std::vector<v1::ScoreRequest> score_requests() const;
  // The header x-request-id of each call of TextService; empty if it was not sent.
  std::vector<std::string> request_ids() const;
  // The header `authorization`, likewise.
  std::vector<std::string> authorizations() const;
  int64_t lines_read() const;  // of documents

 private:
  grpc::Status Translate(grpc::ServerContext* context, const v1::TranslateRequest* request,
                         v1::TranslateResponse* response) override;
  grpc::Status Summarize(grpc::ServerContext* context, const v1::SummarizeRequest* request,
                         v1::SummarizeResponse* response) override;
  grpc::Status StreamTranslate(grpc::ServerContext* context,
                               const v1::StreamTranslateRequest* request,
                               grpc::ServerWriter<v1::StreamTranslateResponse>* writer) override;
  grpc::Status StreamSummarize(grpc::ServerContext* context,
                               const v1::StreamSummarizeRequest* request,
                               grpc::ServerWriter<v1::StreamSummarizeResponse>* writer) override;
  template <typename Lines, typename Result, typename Answer>
  grpc::Status AnswerLines(grpc::ServerContext* context,
                           grpc::ServerReaderWriter<Result, Lines>* stream, Answer answer);
  grpc::Status TranslateDocument(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::TranslateDocumentResponse, v1::TranslateDocumentRequest>* stream)
      override;
  grpc::Status SummarizeDocument(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::SummarizeDocumentResponse, v1::SummarizeDocumentRequest>* stream)
      override;
  grpc::Status Score(grpc::ServerContext* context, const v1::ScoreRequest* request,
                     v1::ScoreResponse* response) override;
  grpc::Status DetectLanguage(grpc::ServerContext* context,
                              const v1::DetectLanguageRequest* request,
                              v1::DetectLanguageResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::GetModelResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;

  void Remember(const grpc::ServerContext& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the texts of the answers in parts of a byte or, of what is not ASCII, a character.
  template <typename Message, typename Response, typename Answers>
  grpc::Status SendParts(grpc::ServerContext* context, const Response& response,
                         const Answers& answers, grpc::ServerWriter<Message>* writer);

  mutable absl::Mutex mu_;
  std::vector<v1::TranslateRequest> translate_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::SummarizeRequest> summarize_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::ScoreRequest> score_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> request_ids_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> authorizations_ ABSL_GUARDED_BY(mu_);
  std::atomic<int64_t> lines_read_ = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// An error like those of a Linnet server: with an ErrorInfo, and with a BadRequest if `field` is
// not empty.
grpc::Status ServerError(grpc::StatusCode code, const std::string& message,
                         const std::string& reason, const std::string& field = "");

// A model as ListModels returns it.
v1::Model ModelOf(const std::string& name, v1::Task task, const std::string& source,
                  const std::string& target);

// A proxy whose server is starting: it answers health checks with UNAVAILABLE, `times` of them, and
// then with SERVING.
class FakeProxy final : public grpc::health::v1::Health::Service {
 public:
  explicit FakeProxy(int times);
  ~FakeProxy() override;
  const std::string& address() const { return address_; }
  int checks() const { return checks_; }

 private:
  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;

  const int times_;
  std::atomic<int> checks_ = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// An address of this machine that refuses connections during the life of the object: the port is
// bound, but nothing listens on it.
class ClosedPort {
 public:
  ClosedPort();
  ~ClosedPort();
  const std::string& address() const { return address_; }

 private:
  int socket_;
  std::string address_;
};

}  // namespace linnet::client
