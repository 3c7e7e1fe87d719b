#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {

// A TextService in this process, on a port of its own: it says what the test tells it to say, and
// remembers what it was asked. Without a handler it translates "A dog." to "[de] A dog." and
// summarises it to "[sum] A dog.".
class PuppetServer final : public v1::TextService::Service {
 public:
  template <typename Request, typename Response>
  using Handler =
      std::function<grpc::Status(grpc::ServerContext&, const Request&, Response& response)>;

  explicit PuppetServer(const std::string& address = "127.0.0.1:0");
  ~PuppetServer() override;

  // "127.0.0.1:PORT"
  const std::string& address() const { return address_; }

  // Set before the first call.
  Handler<v1::TranslateRequest, v1::TranslateResponse> on_translate;
  Handler<v1::SummarizeRequest, v1::SummarizeResponse> on_summarize;
  v1::ListModelsResponse models;

  void SetServing(const std::string& service, bool serving);

  std::vector<v1::TranslateRequest> translate_requests() const;
  std::vector<v1::SummarizeRequest> summarize_requests() const;

 private:
  grpc::Status Translate(grpc::ServerContext* context, const v1::TranslateRequest* request,
                         v1::TranslateResponse* response) override;
  grpc::Status Summarize(grpc::ServerContext* context, const v1::SummarizeRequest* request,
                         v1::SummarizeResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;

  mutable absl::Mutex mu_;
  std::vector<v1::TranslateRequest> translate_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::SummarizeRequest> summarize_requests_ ABSL_GUARDED_BY(mu_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// An error as a Linnet server sends it: with an ErrorInfo, and a BadRequest where `field` is not
// empty.
grpc::Status ServerError(grpc::StatusCode code, const std::string& message,
                         const std::string& reason, const std::string& field = "");

// A model as ListModels gives it.
v1::Model ModelOf(const std::string& name, v1::Task task, const std::string& source,
                  const std::string& target);

// An address of this machine that refuses connections for as long as this lives: the port is taken,
// and nobody listens.
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
