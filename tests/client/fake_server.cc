#include "tests/client/fake_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "gtest/gtest.h"

namespace linnet::client {
namespace {

template <typename Answer>
void Fill(Answer& answer, const std::string& mark, const std::string& content) {
  answer.set_text(absl::StrCat(mark, content));
  answer.set_finish_reason(v1::FINISH_REASON_STOP);
  v1::Segment& segment = *answer.add_segments();
  segment.set_source_end(content.size());
  segment.set_target_end(answer.text().size());
}

}  // namespace

FakeServer::FakeServer(const std::string& address) {
  grpc::EnableDefaultHealthCheckService(true);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
  address_ = absl::StrCat("127.0.0.1:", port);
  SetServing(v1::TextService::service_full_name(), true);
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeServer::SetServing(const std::string& service, bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(service, serving);
}

std::vector<v1::TranslateRequest> FakeServer::translate_requests() const {
  absl::MutexLock lock(&mu_);
  return translate_requests_;
}

std::vector<v1::SummarizeRequest> FakeServer::summarize_requests() const {
  absl::MutexLock lock(&mu_);
  return summarize_requests_;
}

std::vector<v1::ScoreRequest> FakeServer::score_requests() const {
  absl::MutexLock lock(&mu_);
  return score_requests_;
}

std::vector<std::string> FakeServer::request_ids() const {
  absl::MutexLock lock(&mu_);
  return request_ids_;
}

std::vector<std::string> FakeServer::authorizations() const {
  absl::MutexLock lock(&mu_);
  return authorizations_;
}

int64_t FakeServer::lines_read() const { return lines_read_; }

void FakeServer::Remember(const grpc::ServerContext& context) {
  const auto header = [&context](const char* name) -> std::string {
    const auto found = context.client_metadata().find(name);
    if (found == context.client_metadata().end()) return "";
    return {found->second.data(), found->second.size()};
  };
  request_ids_.push_back(header("x-request-id"));
  authorizations_.push_back(header("authorization"));
}

template <typename Message, typename Response, typename Answers>
grpc::Status FakeServer::SendParts(grpc::ServerContext* context, const Response& response,
                                   const Answers& answers, grpc::ServerWriter<Message>* writer) {
  int parts = 0;
  for (int i = 0; i < answers.size(); ++i) {
    const std::string& text = answers[i].text();
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = begin + 1;
      while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
      Message message;
      message.mutable_part()->set_content_index(i);
      message.mutable_part()->set_text(text.substr(begin, end - begin));
      if (end == text.size()) *message.mutable_part()->mutable_segment() = answers[i].segments(0);
      writer->Write(message);
      if (!after_part) continue;
      if (grpc::Status status = after_part(*context, ++parts); !status.ok()) return status;
    }
  }
  Message last;
  *last.mutable_response() = response;
  writer->Write(last);
  return grpc::Status::OK;
}

grpc::Status FakeServer::StreamTranslate(grpc::ServerContext* context,
                                         const v1::StreamTranslateRequest* request,
                                         grpc::ServerWriter<v1::StreamTranslateResponse>* writer) {
  v1::TranslateResponse response;
  const grpc::Status status = Translate(context, &request->request(), &response);
  if (!status.ok()) return status;
  return SendParts(context, response, response.translations(), writer);
}

grpc::Status FakeServer::StreamSummarize(grpc::ServerContext* context,
                                         const v1::StreamSummarizeRequest* request,
                                         grpc::ServerWriter<v1::StreamSummarizeResponse>* writer) {
  v1::SummarizeResponse response;
  const grpc::Status status = Summarize(context, &request->request(), &response);
  if (!status.ok()) return status;
  return SendParts(context, response, response.summaries(), writer);
}

template <typename Lines, typename Result, typename Answer>
grpc::Status FakeServer::AnswerLines(grpc::ServerContext* context,
                                     grpc::ServerReaderWriter<Result, Lines>* stream,
                                     Answer answer) {
  {
    absl::MutexLock lock(&mu_);
    Remember(*context);
  }
  Lines message;
  if (!stream->Read(&message) || !message.has_settings() || !message.keep_order()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the first message has no settings"};
  }
  const auto settings = message.settings();
  do {
    for (const v1::DocumentLine& line : message.lines()) {
      ++lines_read_;
      Result result;
      result.set_sequence_id(line.sequence_id());
      const grpc::Status status = on_line ? on_line(*context, line) : grpc::Status::OK;
      if (status.ok() && omits_lines) {
        result.mutable_response();
      } else if (status.ok()) {
        answer(settings, line, result.mutable_response());
      } else {
        result.mutable_error()->ParseFromString(status.error_details());
        result.mutable_error()->set_code(status.error_code());
        result.mutable_error()->set_message(status.error_message());
      }
      if (!stream->Write(result)) return {grpc::StatusCode::CANCELLED, ""};
    }
  } while (stream->Read(&message));
  if (before_end) before_end(*context);
  return grpc::Status::OK;
}

grpc::Status FakeServer::TranslateDocument(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::TranslateDocumentResponse, v1::TranslateDocumentRequest>* stream) {
  return AnswerLines(context, stream, [](const auto& settings, const auto& line, auto* response) {
    const std::string mark = absl::StrCat("[", settings.target_language_code(), "] ");
    Fill(*response->add_translations(), mark, line.text());
  });
}

grpc::Status FakeServer::SummarizeDocument(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::SummarizeDocumentResponse, v1::SummarizeDocumentRequest>* stream) {
  return AnswerLines(context, stream, [](const auto&, const auto& line, auto* response) {
    Fill(*response->add_summaries(), "[sum] ", line.text());
  });
}

grpc::Status FakeServer::Score(grpc::ServerContext* context, const v1::ScoreRequest* request,
                               v1::ScoreResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    score_requests_.push_back(*request);
    Remember(*context);
  }
  if (on_score) return on_score(*context, *request, *response);
  for (const v1::ScorePair& pair : request->pairs()) {
    v1::TargetScore& score = *response->add_scores();
    score.set_score(-static_cast<float>(pair.target_text().size()));
    score.set_text(pair.target_text());
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::DetectLanguage(grpc::ServerContext* context,
                                        const v1::DetectLanguageRequest* request,
                                        v1::DetectLanguageResponse* response) {
  if (on_detect) return on_detect(*context, *request, *response);
  for (int i = 0; i < request->contents_size(); ++i) {
    v1::LanguageDetection& detection = *response->add_detections();
    detection.set_reliable(true);
    detection.add_languages()->set_language_code("de");
    detection.mutable_languages(0)->set_confidence(1);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext*, const v1::GetModelRequest* request,
                                  v1::GetModelResponse* response) {
  for (const v1::Model& model : models.models()) {
    if (model.name() != request->name()) continue;
    *response->mutable_model() = model;
    return grpc::Status::OK;
  }
  return ServerError(grpc::StatusCode::NOT_FOUND, "no model \"" + request->name() + "\"",
                     "MODEL_NOT_FOUND");
}

grpc::Status FakeServer::Translate(grpc::ServerContext* context,
                                   const v1::TranslateRequest* request,
                                   v1::TranslateResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    translate_requests_.push_back(*request);
    Remember(*context);
  }
  if (on_translate) return on_translate(*context, *request, *response);
  const std::string mark = absl::StrCat("[", request->target_language_code(), "] ");
  for (const std::string& content : request->contents()) {
    Fill(*response->add_translations(), mark, content);
  }
  response->set_model("fake");
  response->set_model_version("1");
  return grpc::Status::OK;
}

grpc::Status FakeServer::Summarize(grpc::ServerContext* context,
                                   const v1::SummarizeRequest* request,
                                   v1::SummarizeResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    summarize_requests_.push_back(*request);
    Remember(*context);
  }
  if (on_summarize) return on_summarize(*context, *request, *response);
  for (const std::string& content : request->contents()) {
    Fill(*response->add_summaries(), "[sum] ", content);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                                    v1::ListModelsResponse* response) {
  *response = models;
  return grpc::Status::OK;
}

grpc::Status ServerError(grpc::StatusCode code, const std::string& message,
                         const std::string& reason, const std::string& field) {
  google::rpc::ErrorInfo info;
  info.set_domain("linnet");
  info.set_reason(reason);
  (*info.mutable_metadata())["limit"] = "9";
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  status.add_details()->PackFrom(info);
  if (!field.empty()) {
    google::rpc::BadRequest bad;
    bad.add_field_violations()->set_field(field);
    bad.mutable_field_violations(0)->set_description(message);
    status.add_details()->PackFrom(bad);
  }
  return grpc::Status(code, message, status.SerializeAsString());
}

v1::Model ModelOf(const std::string& name, v1::Task task, const std::string& source,
                  const std::string& target) {
  v1::Model model;
  model.set_name(name);
  model.set_version("7");
  model.set_task(task);
  model.set_source_language_code(source);
  model.set_target_language_code(target);
  model.mutable_limits()->set_max_source_tokens(256);
  model.mutable_limits()->set_max_target_tokens(200);
  model.set_device("cpu");
  model.set_compute_type("float32");
  model.set_parameters(10500000);
  return model;
}

FakeProxy::FakeProxy(int times) : times_(times) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  // Not gRPC's own health service.
  builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeProxy::~FakeProxy() { server_->Shutdown(std::chrono::system_clock::now()); }

grpc::Status FakeProxy::Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest*,
                              grpc::health::v1::HealthCheckResponse* response) {
  if (++checks_ <= times_) return {grpc::StatusCode::UNAVAILABLE, "no server is available"};
  response->set_status(grpc::health::v1::HealthCheckResponse::SERVING);
  return grpc::Status::OK;
}

ClosedPort::ClosedPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(socket_, generic, size), 0);
  EXPECT_EQ(getsockname(socket_, generic, &size), 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

ClosedPort::~ClosedPort() { close(socket_); }

}  // namespace linnet::client
