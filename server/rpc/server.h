#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission.h"
#include "server/catalog.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/rpc/metrics_page.h"
#include "server/rpc/text_service.h"
#include "server/text_call.h"
#include "server/text_pool.h"

namespace linnet::server {

// All of linnet-server, in order of life. The gRPC port opens when the models are loaded and warm,
// so that whoever can connect is served.
class Server {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options,
                                                       const Catalog::EngineFactory& factory);
  ~Server();  // Drain, at once

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& metrics_address() const { return metrics_address_; }

  // Health turns to NOT_SERVING, newcomers get UNAVAILABLE, what runs may end until the deadline
  // and then ends with UNAVAILABLE; returns when nothing is left.
  void Drain(absl::Time deadline);

 private:
  explicit Server(const Options& options)
      : pool_(options.text_threads), admission_(options.admission, metrics_) {}

  Metrics metrics_;
  TextPool pool_;
  Admission admission_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<TextCalls> calls_;
  std::unique_ptr<TextService> service_;
  std::unique_ptr<MetricsPage> page_;
  std::unique_ptr<grpc::Server> grpc_;
  std::string grpc_address_;
  std::string metrics_address_;
};

}  // namespace linnet::server
