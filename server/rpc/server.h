#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/admin_calls.h"
#include "server/metrics.h"
#include "server/models/catalog.h"
#include "server/models/reloader.h"
#include "server/options.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/credentials.h"
#include "server/rpc/health_service.h"
#include "server/rpc/metrics_page.h"
#include "server/rpc/port.h"
#include "server/rpc/slow_readers.h"
#include "server/rpc/text_service.h"
#include "server/schedule/admission.h"
#include "server/schedule/ticker.h"
#include "server/text/text_call.h"
#include "server/text/text_pool.h"

namespace linnet::server {

// All of linnet-server, in order of life. The gRPC port opens when the models are loaded and warm,
// so that whoever can connect is served.
//
// Its health is kept under these names: "" and "linnet.v1.TextService" are serving while calls are
// taken and every model's engine works, "model/NAME" while that of one does, and "liveness" until
// an engine is stuck and may not be replaced: who is not live is to be killed and started again.
class Server {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options,
                                                       const Catalog::EngineFactory& factory);
  ~Server();  // Drain, at once

  const std::string& grpc_address() const { return port_->address(); }
  // Empty without one.
  std::string admin_address() const { return admin_port_ == nullptr ? "" : admin_port_->address(); }
  const std::string& metrics_address() const { return metrics_address_; }

  // Catalog::Reload of all models, soon and on another thread.
  void ReloadSoon();
  // Health turns to NOT_SERVING, and for the time of a lame duck everything else is as before, so
  // that balancers can look elsewhere. Then the port is closed and connections are told to go away;
  // what runs may end for as long as `timeout`, and then ends with UNAVAILABLE. Returns when
  // nothing is left.
  void Drain(absl::Duration lame_duck, absl::Duration timeout);
  // An engine does not return from a call, so that the server cannot be destroyed.
  bool stuck() const;

 private:
  explicit Server(const Options& options)
      : engine_patience_(options.engine_patience),
        max_abandoned_engines_(options.max_abandoned_engines),
        pool_(options.text_threads),
        admission_(options.admission, metrics_),
        slow_readers_(options.security.read_timeout) {}

  // Looks after the engines, and shows what it sees.
  void Tick();

  const absl::Duration engine_patience_;
  const int max_abandoned_engines_;

  Metrics metrics_;
  TextPool pool_;
  Admission admission_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<TextCalls> calls_;
  std::unique_ptr<TextService> service_;
  SlowReaders slow_readers_;
  HealthService health_;
  std::atomic<bool> draining_ = false;
  // Shared with gRPC; both null without tokens.
  std::shared_ptr<TokenFile> tokens_;
  std::shared_ptr<Authenticator> authenticator_;
  std::set<std::string> shown_;  // models whose health is kept; Tick's
  std::unique_ptr<MetricsPage> page_;
  std::string metrics_address_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<AdminCalls> admin_calls_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<Port> admin_port_;
  std::unique_ptr<Ticker> ticker_;  // last: it uses all of the above
};

}  // namespace linnet::server
