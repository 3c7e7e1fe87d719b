#include "tests/client/puppet_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
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

PuppetServer::PuppetServer(const std::string& address) {
  grpc::EnableDefaultHealthCheckService(true);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
  address_ = absl::StrCat("127.0.0.1:", port);
}

PuppetServer::~PuppetServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void PuppetServer::SetServing(const std::string& service, bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(service, serving);
}

std::vector<v1::TranslateRequest> PuppetServer::translate_requests() const {
  absl::MutexLock lock(&mu_);
  return translate_requests_;
}

std::vector<v1::SummarizeRequest> PuppetServer::summarize_requests() const {
  absl::MutexLock lock(&mu_);
  return summarize_requests_;
}

grpc::Status PuppetServer::Translate(grpc::ServerContext* context,
                                     const v1::TranslateRequest* request,
                                     v1::TranslateResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    translate_requests_.push_back(*request);
  }
  if (on_translate) return on_translate(*context, *request, *response);
  const std::string mark = absl::StrCat("[", request->target_language_code(), "] ");
  for (const std::string& content : request->contents()) {
    Fill(*response->add_translations(), mark, content);
  }
  response->set_model("puppet");
  response->set_model_version("1");
  return grpc::Status::OK;
}

grpc::Status PuppetServer::Summarize(grpc::ServerContext* context,
                                     const v1::SummarizeRequest* request,
                                     v1::SummarizeResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    summarize_requests_.push_back(*request);
  }
  if (on_summarize) return on_summarize(*context, *request, *response);
  for (const std::string& content : request->contents()) {
    Fill(*response->add_summaries(), "[sum] ", content);
  }
  return grpc::Status::OK;
}

grpc::Status PuppetServer::ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
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
