#include "server/rpc/server.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/log.h"

namespace linnet::server {
namespace {

// How long gRPC may take to flush the answers of a drain before it cuts connections.
constexpr absl::Duration kFlushTime = absl::Seconds(1);
// How often the engines are looked after.
constexpr absl::Duration kTick = absl::Milliseconds(250);

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
}

void SetLimits(const SecurityOptions& security, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, security.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, security.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(security.max_idle));
  // A client that has gone without a word is found out.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(security.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(security.keepalive));
  // Clients may ask the same, as often as every ten seconds and between calls.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options,
                                                      const Catalog::EngineFactory& factory) {
  std::unique_ptr<Server> server(new Server(options));
  // First, because it is cheap to find out that the address is taken, and loading is then watched.
  auto page = MetricsPage::Open(options.metrics_listen, server->metrics_);
  if (!page.ok()) return page.status();
  server->page_ = *std::move(page);
  server->metrics_address_ = WithPort(options.metrics_listen, server->page_->port());

  auto catalog = Catalog::Load(
      options.models, factory, options.batcher, server->metrics_,
      [&admission = server->admission_](const std::string& model, const StepReport& report,
                                        absl::Duration cycle) {
        admission.StepMade(model, report, cycle);
      },
      options.max_model_bytes);
  if (!catalog.ok()) return catalog.status();
  server->catalog_ = *std::move(catalog);
  server->calls_ = std::make_unique<TextCalls>(*server->catalog_, server->admission_, server->pool_,
                                               server->metrics_, options.text);
  server->service_ = std::make_unique<TextService>(*server->calls_, server->metrics_);
  server->reloads_ = std::make_unique<TextPool>(1);
  server->Tick();  // the port opens with all that is to be known of its health

  if (!options.security.tokens.empty()) {
    auto authenticator = Authenticator::Open(options.security.tokens);
    if (!authenticator.ok()) return authenticator.status();
    server->authenticator_ = *std::move(authenticator);
  }
  auto credentials = MakeCredentials(options.security, options.listen, server->authenticator_);
  if (!credentials.ok()) return credentials.status();
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (options.security.channelz) grpc::channelz::experimental::InitChannelzService();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, *credentials, &port);
  SetLimits(options.security, builder);
  builder.RegisterService(server->service_.get());
  builder.RegisterService(&server->health_);
  // With SO_REUSEPORT, gRPC's default, a second server would take the same port in silence.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Room for the largest text and its request, so that what is too long is refused by us, with the
  // limit.
  const int64_t most_bytes = std::max<int64_t>(4 << 20, 2 * options.text.max_text_bytes);
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<int64_t>(most_bytes, std::numeric_limits<int>::max())));
  server->grpc_ = builder.BuildAndStart();
  if (server->grpc_ == nullptr || port == 0) {
    server->grpc_ = nullptr;
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen,
                     ": the address is taken or not of this "
                     "machine; choose another with --listen, port 0 picks one"));
  }
  server->grpc_address_ = WithPort(options.listen, port);
  server->ticker_ = std::make_unique<Ticker>(kTick, [server = server.get()] { server->Tick(); });
  return server;
}

Server::~Server() { Drain(absl::ZeroDuration(), absl::ZeroDuration()); }

void Server::ReloadSoon(std::function<void(const ReloadReport&)> done) {
  reloads_->Run(
      [this, done = std::move(done)] {
        const ReloadReport report = catalog_->Reload();
        metrics_.Reloaded(report.ok());
        int loaded = 0, failed = 0;
        for (const ReloadReport::Outcome& outcome : report.outcomes) {
          loaded += outcome.loaded && outcome.status.ok();
          failed += !outcome.status.ok();
        }
        Log(report.ok() ? LogLevel::kInfo : LogLevel::kError, "reloaded",
            {{"loaded", loaded}, {"failed", failed}, {"status", report.status.ToString()}});
        if (done) done(report);
      },
      TextPool::Urgency::kNewcomer);
}

void Server::Tick() {
  catalog_->Sweep();
  if (authenticator_ != nullptr) authenticator_->Refresh();
  std::set<std::string> shown;
  bool ready = !draining_;
  bool live = true;
  for (const auto& model : catalog_->models()) {
    model->scheduler->Watch(absl::Now(), engine_patience_);
    const EngineHealth health = model->scheduler->health();
    const bool up = health.state == EngineHealth::State::kUp;
    model->metrics->SetEngine(up, health.restarts);
    health_.Set(absl::StrCat("model/", model->key()), up && !draining_);
    shown.insert(model->key());
    ready &= up;
    live &= health.state != EngineHealth::State::kStuck;
  }
  for (const std::string& key : shown_) {
    if (!shown.contains(key)) health_.Set(absl::StrCat("model/", key), false);
  }
  shown_ = std::move(shown);
  metrics_.SetReady(ready);
  health_.Set("", ready);
  health_.Set(linnet::v1::TextService::service_full_name(), ready);
  health_.Set("liveness", live);
}

bool Server::stuck() const {
  for (const auto& model : catalog_->models()) {
    if (model->scheduler->health().state == EngineHealth::State::kStuck) return true;
  }
  return false;
}

void Server::Drain(absl::Duration lame_duck, absl::Duration timeout) {
  if (grpc_ == nullptr) return;
  draining_ = true;
  Tick();
  absl::SleepFor(lame_duck);
  const absl::Time deadline = absl::Now() + timeout;
  health_.EndWatches();
  // Closes the port and says GOAWAY at once, and waits for the calls; a client that does not read
  // its answer is cut off in the end.
  std::thread shutdown(
      [this, deadline] { grpc_->Shutdown(absl::ToChronoTime(deadline + kFlushTime)); });
  calls_->Drain(deadline);
  shutdown.join();
  grpc_->Wait();
  grpc_ = nullptr;
}

}  // namespace linnet::server
