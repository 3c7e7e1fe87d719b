#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/mutex.h"

namespace linnet::server {

// grpc.health.v1.Health: gRPC's own service cannot end its watches, so that a server which waits
// for its calls to end would wait for those who watch it. Thread-safe.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;

  void Set(const std::string& service, bool serving);
  // Who asks for the health of the whole is told of these as well, in the trailer
  // `linnet-not-serving`: "en-de,en-summary".
  void SetNotServing(std::string models);
  // Every watch ends once it has told the latest; new ones end at once.
  void EndWatches();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const Request* request,
                                  Response* response) override;
  grpc::ServerWriteReactor<Response>* Watch(grpc::CallbackServerContext* context,
                                            const Request* request) override;

 private:
  class WatchCall;

  void StepAll();

  Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  std::string not_serving_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<WatchCall>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
