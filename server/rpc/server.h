#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/admin_calls.h"
#include "server/admission/admission.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/cache/answer_cache.h"
#include "server/config/options.h"
#include "server/identity/trusted_proxies.h"
#include "server/metrics/metrics.h"
#include "server/models/catalog.h"
#include "server/models/health_reader.h"
#include "server/models/reloader.h"
#include "server/port/connections.h"
#include "server/port/credentials.h"
#include "server/port/port.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/health_service.h"
#include "server/rpc/metrics_page.h"
#include "server/rpc/text_service.h"
#include "server/rpc/timed_operations.h"
#include "server/schedule/engine_memory.h"
#include "server/schedule/supervisor.h"
#include "server/schedule/ticker.h"
#include "server/text/text_call.h"
#include "server/text/text_pool.h"

namespace linnet::server {

// All parts of linnet-server, in the order of their lifetimes. The gRPC port opens after the models
// are loaded and warmed up, so every client that can connect is served.
//
// Health is registered under these names: "model/NAME" is serving while that model is loaded and
// its engine works; "" and "linnet.v1.TextService" while that holds for any model and calls are
// accepted; "liveness" until an engine has failed for good, after which the process must be killed
// and restarted.
class Server {
 public:
  // `failed` is called once `failure` is set. `end` ends the process and does not return; it is
  // called if the process does not end otherwise.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Options& options, const Catalog::EngineFactory& factory, const EngineInfoFactory& info,
      std::function<void()> end, std::function<void()> failed = [] {});
  ~Server();  // drains at once

  const std::string& grpc_address() const { return port_->address(); }
  // Empty if there is no admin port.
  std::string admin_address() const { return admin_port_ == nullptr ? "" : admin_port_->address(); }
  const std::string& metrics_address() const { return metrics_address_; }
  // The names of the models whose bundles could not be loaded, as in health and metrics. Empty at
  // start without Options::allow_missing.
  std::vector<std::string> Missing() const;

  // Queues Catalog::Reload of all models on another thread.
  void ReloadSoon();
  // Health turns to NOT_SERVING, and for the duration of the lame duck calls are still accepted, so
  // that load balancers can switch. Then the port is closed and GOAWAY is sent. Calls in flight may
  // finish within `timeout`, and then end with UNAVAILABLE. Returns when no call is left.
  void Drain(absl::Duration lame_duck, absl::Duration timeout);
  // Call it after Drain. Asks the threads that load models to end. False if one does not within a
  // second, because a load cannot be interrupted: then end the process without destroying the
  // server, whose destructor would wait for the load.
  bool Stop();
  // Set if an engine has failed for good: then drain, and end the process without destroying the
  // server, whose destructor might wait for that engine.
  std::optional<EngineFailure> failure() const { return supervisor_.failure(); }

 private:
  Server(const Options& options, std::function<void()> end, std::function<void()> failed)
      : certificate_(options.security.tls_certificate),
        supervisor_(std::move(end), kMaxGap, std::move(failed)),
        supervision_(kSupervisionInterval, [this] { supervisor_.Tick(MonotonicNow()); }),
        pool_(TextThreads(static_cast<int>(std::thread::hardware_concurrency()))),
        admission_(options.admission, metrics_),
        cache_(options.answer_cache_bytes, options.cache_tenant),
        engine_memory_(options.max_model_bytes),
        reads_(options.security.request_timeout, "slow_requests",
               "the request did not come in time; send it at once, or in smaller parts"),
        writes_(options.security.request_timeout, "slow_readers",
                "the client did not read the response in time"),
        connections_(ConnectionLimits(options.security, MaxRequestBytes(options))),
        admin_connections_(ConnectionLimits(options.security, kMaxAdminRequestBytes)) {}
  // Room for the largest text with its request, so that a request that is too long is refused by
  // us, with the limit in the message.
  static int64_t MaxRequestBytes(const Options& options) {
    return std::max<int64_t>(4 << 20, 2 * options.text.max_text_bytes);
  }
  static constexpr int64_t kMaxAdminRequestBytes = 64 << 10;

  static constexpr absl::Duration kSupervisionInterval = absl::Milliseconds(250);
  // A longer pause between two ticks is none of the machine's scheduler: the process did not run.
  static constexpr absl::Duration kMaxGap = absl::Seconds(3);

  // Periodic work that may take a while; runs on ticker_.
  void Maintain();
  // Gives clients the time in which this process did not run, and logs it.
  void ForgiveGap(MonotonicTime now);
  void ShowHealth();
  void ShowCertificate(MonotonicTime now);

  const std::string certificate_;   // its file; empty without TLS
  MonotonicTime next_certificate_;  // used by Maintain, as the next one
  ProcessGap gap_{kMaxGap};

  Supervisor supervisor_;
  Ticker supervision_;  // its own thread: nothing that blocks may delay the supervisor
  Metrics metrics_;
  TextPool pool_;
  Admission admission_;
  AnswerCache cache_;
  EngineMemory engine_memory_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<TextCalls> calls_;
  std::unique_ptr<TextService> service_;
  TrustedProxies proxies_;
  TimedOperations reads_;
  TimedOperations writes_;
  Connections connections_;
  Connections admin_connections_;
  HealthService health_{reads_, connections_, admission_, proxies_};
  std::atomic<bool> draining_ = false;
  // Shared with gRPC; null without tokens.
  std::shared_ptr<TokenFile> tokens_;
  std::shared_ptr<Authenticator> authenticator_;
  Mutex shown_mu_;
  // Null while models are loaded for the first time, as next.
  std::unique_ptr<HealthReader> health_reader_ ABSL_GUARDED_BY(shown_mu_);
  std::map<std::string, bool> shown_ ABSL_GUARDED_BY(shown_mu_);  // model → is it serving
  // The state of the server itself as it was shown; not set if the models have changed since.
  struct OwnHealth {
    bool draining, failed;
    bool operator==(const OwnHealth&) const = default;
  };
  std::optional<OwnHealth> shown_of_server_ ABSL_GUARDED_BY(shown_mu_);
  std::unique_ptr<MetricsPage> page_;
  std::string metrics_address_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<AdminCalls> admin_calls_;
  // One service per port, because each port counts the calls of its own connections.
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<AdminService> admin_port_service_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<Port> admin_port_;
  std::unique_ptr<Ticker> ticker_;  // last: it uses all of the above
};

}  // namespace linnet::server
