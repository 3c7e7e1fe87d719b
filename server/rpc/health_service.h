#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/base/mutex.h"
#include "server/rpc/connections.h"
#include "server/rpc/raw_methods.h"
#include "server/rpc/timed_operations.h"

namespace linnet::server {

// grpc.health.v1.Health: gRPC's own service cannot end its watches, so that a server which waits
// for its calls to end would wait for those who watch it. Thread-safe.
class HealthService final : public RawMethods<grpc::health::v1::Health> {
 public:
  // Both outlive the service: what times its reads, and the connections of its port. A call to it
  // is never an authenticated one.
  HealthService(TimedOperations& reads, Connections& connections);

  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;

  void Set(const std::string& service, bool serving);
  // Who asks for the health of the whole is told of these as well, in the trailer
  // `linnet-not-serving`: "en-de,en-summary".
  void SetNotServing(std::string models);
  // Every watch ends once it has told the latest; new ones end at once.
  void EndWatches();

 private:
  class HealthCall;
  class CheckCall;
  class WatchCall;

  Response::ServingStatus StatusOf(const std::string& service) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void StepAll();

  Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  std::string not_serving_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<WatchCall>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
