#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/admission/admission.h"
#include "server/base/mutex.h"
#include "server/identity/trusted_proxies.h"
#include "server/port/connections.h"
#include "server/rpc/raw_methods.h"
#include "server/rpc/timed_operations.h"

namespace linnet::server {

// grpc.health.v1.Health. gRPC's own implementation cannot end its watches, so a draining server
// would wait for its watchers. Thread-safe.
class HealthService final : public RawMethods<grpc::health::v1::Health> {
 public:
  // All must outlive the service: the timeout of its reads, the connections of its port, the
  // admission of its open calls, as those of kHealthClient, and the proxies that name their
  // clients. Its calls are never authenticated.
  HealthService(TimedOperations& reads, Connections& connections, Admission& admission,
                const TrustedProxies& proxies);

  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;

  // Publishes these services' states together: no call sees one of them without the others.
  // Services that `serving` does not name keep their states. Check("") also returns the models
  // `not_serving`, in the trailer `linnet-not-serving`: "en-de,en-summary".
  void Set(const std::map<std::string, bool>& serving, std::string not_serving);
  // Ends every watch after it has sent its last state; new watches end at once.
  void EndWatches();

 private:
  class HealthCall;
  class CheckCall;
  class WatchCall;

  Response::ServingStatus ServiceStatus(const std::string& service)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void StepAll();

  Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  std::string not_serving_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<WatchCall>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
