#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/metrics/metrics.h"

namespace prometheus {
class Exposer;
}

namespace linnet::server {

// Serves /metrics over HTTP, and a page for people (StatusPage) at /, on threads of its own while
// it lives.
class MetricsPage {
 public:
  // UnavailableError if the address cannot be taken.
  static absl::StatusOr<std::unique_ptr<MetricsPage>> Open(const std::string& address,
                                                           const Metrics& metrics);
  ~MetricsPage();

  int port() const { return port_; }

 private:
  MetricsPage() = default;

  std::shared_ptr<prometheus::Collectable> collectable_;  // the exposer holds it weakly
  std::unique_ptr<prometheus::Exposer> exposer_;
  const void* context_ = nullptr;  // civetweb's, of the exposer
  int port_ = 0;
};

}  // namespace linnet::server
