#include "server/rpc/server.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"
#include "server/config/address.h"
#include "server/metrics/nvml.h"
#include "server/port/tls_files.h"

namespace linnet::server {
namespace {

// Time for gRPC to flush the answers of a drain before it closes connections.
constexpr absl::Duration kFlushTime = absl::Seconds(1);
// Time for the threads of the models to end when there are no calls left.
constexpr absl::Duration kStopTime = absl::Seconds(1);
// Time for a server with a failed engine to end, in addition to its drain.
constexpr absl::Duration kEndTime = absl::Seconds(5);
// Interval of Maintain.
constexpr absl::Duration kTick = absl::Milliseconds(250);
// Bytes of names in a trailer of a health check: clients refuse headers of more than 8 KB.
constexpr size_t kMaxNotServing = 1000;
// Interval at which the end of the certificate is read: gRPC reloads it within five seconds.
constexpr absl::Duration kCertificateInterval = absl::Seconds(5);

// The name in health and metrics of a bundle that is not loaded: "en-de@2" for the folder en-de/2.
std::string ModelOfFolder(const std::string& folder) {
  return absl::StrReplaceAll(folder, {{"/", "@"}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options,
                                                      const Catalog::EngineFactory& factory,
                                                      const EngineInfoFactory& info,
                                                      std::function<void()> end,
                                                      std::function<void()> failed) {
  std::unique_ptr<Server> server(new Server(options, std::move(end), std::move(failed)));
  ASSIGN_OR_RETURN(server->proxies_, TrustedProxies::Parse(options.security.trusted_proxies));
  if (!options.security.tokens.empty()) {
    ASSIGN_OR_RETURN(server->tokens_, TokenFile::Open(options.security.tokens, server->metrics_));
    server->authenticator_ = std::make_shared<Authenticator>(server->tokens_, server->metrics_);
  }
  ASSIGN_OR_RETURN(auto credentials,
                   MakeCredentials(options.security, options.listen, server->authenticator_));
  ASSIGN_OR_RETURN(
      auto admin_credentials,
      MakeAdminCredentials(options.security, options.admin_listen, server->authenticator_));
  server->metrics_.ShowGpus(Nvml::Open());
  // First, because a taken address is found quickly, and metrics are available during loading.
  ASSIGN_OR_RETURN(server->page_, MetricsPage::Open(options.metrics_listen, server->metrics_));
  server->metrics_address_ = WithPort(options.metrics_listen, server->page_->port());

  OnDemandOptions on_demand;
  if (options.load_on_demand && info == nullptr) {
    return absl::InvalidArgumentError(
        "--load-on-demand is set, and this program cannot describe an engine without loading it");
  }
  if (options.load_on_demand) {
    on_demand = {.memory = &server->engine_memory_, .info = info};
    for (absl::string_view name :
         absl::StrSplit(options.pinned_models, ',', absl::SkipWhitespace()))
      on_demand.pinned.emplace(absl::StripAsciiWhitespace(name));
  }
  auto catalog = Catalog::Load(
      options.models, factory, options.batcher, server->metrics_,
      [&admission = server->admission_](const std::string& model, const StepReport& report,
                                        absl::Duration cycle) {
        admission.StepMade(model, report, cycle);
      },
      options.load_on_demand ? 0 : options.max_model_bytes,
      {.stall_timeout = options.engine_stall_timeout,
       .load_timeout = options.engine_load_timeout,
       .supervisor = &server->supervisor_},
      options.bundle_keys, options.answer_cache_bytes > 0 ? &server->cache_ : nullptr, on_demand);
  ASSIGN_OR_RETURN(server->catalog_, std::move(catalog));
  if (absl::Status missing = server->catalog_->MissingError();
      !missing.ok() && !options.allow_missing) {
    return absl::Status(
        missing.code(),
        absl::StrCat(missing.message(),
                     "\nrepair or remove them, or set --allow-missing true to serve "
                     "the others without them"));
  }
  for (const std::string& name : on_demand.pinned) {
    const auto model = server->catalog_->Named(name);
    if (!model.ok()) {
      return absl::NotFoundError(
          absl::StrCat("--load-on-demand except= has \"", name, "\": ", model.status().message()));
    }
    if ((*model)->name() != name) {
      return absl::InvalidArgumentError(absl::StrCat("--load-on-demand except= has \"", name,
                                                     "\", it takes the name alone, which pins all "
                                                     "versions: \"",
                                                     (*model)->name(), "\""));
    }
  }
  server->calls_ = std::make_unique<TextCalls>(
      *server->catalog_, server->admission_, server->pool_, server->metrics_, options.text,
      options.slow_call > absl::ZeroDuration() ? options.slow_call : absl::InfiniteDuration());
  const CallServices services{server->metrics_,     server->reads_,   server->writes_,
                              server->connections_, server->proxies_, server->tokens_.get()};
  const CallServices admin_services{server->metrics_, server->reads_,
                                    server->writes_,  server->admin_connections_,
                                    server->proxies_, server->tokens_.get()};
  CallServices counted = services;
  counted.admission = &server->admission_;
  server->service_ = std::make_unique<TextService>(*server->calls_, counted);
  server->reloader_ = std::make_unique<Reloader>(*server->catalog_, server->metrics_);
  server->admin_calls_ = std::make_unique<AdminCalls>(*server->catalog_, *server->reloader_);
  server->admin_service_ = std::make_unique<AdminService>(*server->admin_calls_, services);
  server->admin_port_service_ =
      std::make_unique<AdminService>(*server->admin_calls_, admin_services);
  server->ShowHealth();  // all health states are set before the port opens

  std::vector<grpc::Service*> port_services = {server->service_.get(), &server->health_};
  // The admin service needs tokens for authorisation.
  if (server->authenticator_ != nullptr) port_services.push_back(server->admin_service_.get());
  ASSIGN_OR_RETURN(server->port_, Port::Open({.address = options.listen,
                                              .flag = "--listen",
                                              .credentials = credentials,
                                              .services = port_services,
                                              .connections = &server->connections_,
                                              .max_request_bytes = MaxRequestBytes(options)},
                                             options.security));
  if (!options.admin_listen.empty()) {
    ASSIGN_OR_RETURN(server->admin_port_,
                     Port::Open({.address = options.admin_listen,
                                 .flag = "--admin-listen",
                                 .credentials = admin_credentials,
                                 .services = {server->admin_port_service_.get()},
                                 .connections = &server->admin_connections_,
                                 .max_request_bytes = kMaxAdminRequestBytes},
                                options.security));
  }
  server->ticker_ =
      std::make_unique<Ticker>(kTick, [server = server.get()] { server->Maintain(); });
  server->supervisor_.SetGrace(options.drain_timeout + kEndTime);
  return server;
}

Server::~Server() { Drain(absl::ZeroDuration(), absl::ZeroDuration()); }

std::vector<std::string> Server::Missing() const {
  std::vector<std::string> names;
  for (const auto& [folder, cause] : catalog_->not_loaded()) names.push_back(ModelOfFolder(folder));
  return names;
}

void Server::ReloadSoon() { reloader_->Ask("").IgnoreError(); }

void Server::Maintain() {
  ShowHealth();
  // An idle scheduler has nothing to maintain.
  if (!supervisor_.idle_period().has_value()) catalog_->MaintainSchedulers(MonotonicNow());
  catalog_->Sweep();
  if (tokens_ != nullptr) tokens_->Refresh();
  ShowCertificate(MonotonicNow());
  ForgiveGap(MonotonicNow());
  reads_.Cancel(MonotonicNow());
  writes_.Cancel(MonotonicNow());
  metrics_.SetLostLogLines(LostLogLines());
  metrics_.SetAnswerCacheBytes(cache_.stats().bytes);
  metrics_.SetConnections(connections_.open(), connections_.refused(), connections_.expelled());
}

void Server::ForgiveGap(MonotonicTime now) {
  const absl::Duration gap = gap_.Observe(now);
  if (gap == absl::ZeroDuration()) return;
  reads_.Forgive(gap, now);
  writes_.Forgive(gap, now);
  Log(LogLevel::kWarning, "process_did_not_run", {{"seconds", absl::ToDoubleSeconds(gap)}});
}

void Server::ShowHealth() {
  MutexLock lock(shown_mu_);  // held to the end, so that states are published in order
  if (health_reader_ == nullptr)
    health_reader_ = std::make_unique<HealthReader>(*catalog_, supervisor_);
  const OwnHealth own = {.draining = draining_, .failed = supervisor_.failure().has_value()};
  if (health_reader_->Read()) shown_of_server_ = std::nullopt;
  if (shown_of_server_ == own) return;
  std::map<std::string, bool> serving;
  for (const CatalogHealth::Model& model : health_reader_->health().models)
    serving[model.key] = model.state == EngineHealth::State::kUp;
  for (const std::string& folder : health_reader_->health().missing)
    serving.emplace(ModelOfFolder(folder), false);
  std::map<std::string, bool> states;
  std::string not_serving;
  bool ready = false;
  for (const auto& [model, up] : serving) {
    ready |= up;
    if (!up && not_serving.size() < kMaxNotServing)
      absl::StrAppend(&not_serving, not_serving.empty() ? "" : ",", absl::CHexEscape(model));
    states.emplace(absl::StrCat("model/", model), up && !own.draining);
    const auto before = shown_.find(model);
    if (before == shown_.end() ? !up : before->second != up)
      Log(up ? LogLevel::kInfo : LogLevel::kError, up ? "model_serving" : "model_not_serving",
          {{"model", model}});
  }
  for (const auto& [model, up] : shown_) {
    if (!serving.contains(model)) states.emplace(absl::StrCat("model/", model), false);
  }
  ready &= !own.draining;
  metrics_.SetReady(ready);
  metrics_.SetServing(serving);
  shown_ = std::move(serving);
  states.emplace("", ready);
  states.emplace(linnet::v1::TextService::service_full_name(), ready);
  states.emplace("liveness", !own.failed);
  health_.Set(states, std::move(not_serving));
  shown_of_server_ = own;
}

void Server::ShowCertificate(MonotonicTime now) {
  if (certificate_.empty() || now < next_certificate_) return;
  next_certificate_ = After(now, kCertificateInterval);
  // gRPC logs an unreadable certificate and keeps the former one.
  if (const auto end = CertificatesEnd(certificate_); end.ok()) metrics_.SetCertificateEnd(*end);
}

void Server::Drain(absl::Duration lame_duck, absl::Duration timeout) {
  if (port_ == nullptr) return;
  draining_ = true;
  ShowHealth();
  absl::SleepFor(lame_duck);
  const MonotonicTime deadline = After(MonotonicNow(), timeout);
  health_.EndWatches();
  // Ends the calls, also watches, whose request has not come: the port would wait for them. Before
  // it is closed: gRPC closes a connection with its last call, and their status would not be sent.
  reads_.ShutDown(MonotonicNow());
  reloader_->Stop();
  {
    // Joined when the calls have ended, or an exception has ended the drain.
    const std::jthread closing([this, deadline] {
      try {
        port_->Close(After(deadline, kFlushTime));
      } catch (...) {
        LogException("port_close_failed");
      }
    });
    calls_->Drain(deadline);
  }
  port_ = nullptr;
  // Last: until then GetBatch shows the remaining calls.
  if (admin_port_ != nullptr) admin_port_->Close(After(MonotonicNow(), kFlushTime));
  admin_port_ = nullptr;
}

bool Server::Stop() {
  const MonotonicTime deadline = After(MonotonicNow(), kStopTime);
  return reloader_->WaitUntilIdle(deadline) && catalog_->Stop(deadline);
}

}  // namespace linnet::server
