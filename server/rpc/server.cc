#include "server/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/log.h"

namespace linnet::server {
namespace {

// How long gRPC may take to flush the answers of a drain before it cuts connections.
constexpr absl::Duration kFlushTime = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options,
                                                      const Catalog::EngineFactory& factory) {
  std::unique_ptr<Server> server(new Server(options));
  // First, because it is cheap to find out that the address is taken, and loading is then watched.
  auto page = MetricsPage::Open(options.metrics_listen, server->metrics_);
  if (!page.ok()) return page.status();
  server->page_ = *std::move(page);
  server->metrics_address_ = WithPort(options.metrics_listen, server->page_->port());

  auto catalog = Catalog::Load(options.models, factory, options.batcher, server->metrics_);
  if (!catalog.ok()) return catalog.status();
  server->catalog_ = *std::move(catalog);
  server->calls_ = std::make_unique<TextCalls>(*server->catalog_, server->admission_, server->pool_,
                                               server->metrics_, options.text);
  server->service_ = std::make_unique<TextService>(*server->calls_, server->metrics_);

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(server->service_.get());
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
  server->grpc_->GetHealthCheckService()->SetServingStatus(
      linnet::v1::TextService::service_full_name(), true);
  return server;
}

Server::~Server() { Drain(absl::Now()); }

void Server::Drain(absl::Time deadline) {
  if (grpc_ == nullptr) return;
  grpc_->GetHealthCheckService()->SetServingStatus(false);
  calls_->Drain(deadline);
  // Streams of health watchers never end by themselves: the deadline cuts them.
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + kFlushTime));
  grpc_->Wait();
  grpc_ = nullptr;
}

}  // namespace linnet::server
