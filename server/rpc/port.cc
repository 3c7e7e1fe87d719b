#include "server/rpc/port.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
}

// gRPC gives its extra services to every server of a process that links them; this leaves those
// that are wanted.
class ExtraServices final : public grpc::ServerBuilderOption {
 public:
  explicit ExtraServices(const SecurityOptions& security) : security_(security) {}
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins, [&](const auto& plugin) {
      return (plugin->name() == "proto_server_reflection" && !security_.reflection) ||
             (plugin->name() == "channelz_service" && !security_.channelz);
    });
  }

 private:
  const SecurityOptions security_;
};

void SetLimits(const SecurityOptions& security, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, security.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, security.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(security.max_idle));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(security.handshake_timeout));
  // A client that has gone without a word is found out, also while there is nothing to send to it.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(security.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(security.keepalive));
  // Clients may ask the same, as often as every ten seconds and between calls.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Port>> Port::Open(const Setup& setup,
                                                 const SecurityOptions& security) {
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::channelz::experimental::InitChannelzService();
  std::unique_ptr<Port> port(new Port);
  auto acceptor =
      Acceptor::Listen(setup.address, {.connections = security.max_connections,
                                       .connections_per_peer = security.max_connections_per_address,
                                       .user_timeout = 2 * security.keepalive});
  if (!acceptor.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", setup.address,
                     ": the address is taken or not of this machine; choose another with ",
                     setup.flag, ", port 0 picks one (", acceptor.status().message(), ")"));
  }
  port->acceptor_ = *std::move(acceptor);
  port->address_ = WithPort(setup.address, port->acceptor_->port());
  grpc::ServerBuilder builder;
  using FromSocket = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  port->connections_ =
      builder.experimental().AddExternalConnectionAcceptor(FromSocket::FROM_FD, setup.credentials);
  SetLimits(security, builder);
  builder.SetOption(std::make_unique<ExtraServices>(security));
  for (grpc::Service* service : setup.services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(static_cast<int>(
      std::min<int64_t>(setup.max_request_bytes, std::numeric_limits<int>::max())));
  port->server_ = builder.BuildAndStart();
  if (port->server_ == nullptr)
    return absl::InternalError(absl::StrCat("gRPC does not serve on ", setup.address));
  port->acceptor_->Start([&connections = *port->connections_](int socket) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    connections.HandleNewConnection(&connection);
  });
  return port;
}

Port::~Port() { Close(absl::InfinitePast()); }

void Port::Close(absl::Time deadline) {
  if (server_ == nullptr) return;
  acceptor_->Close();
  server_->Shutdown(absl::ToChronoTime(std::max(deadline, absl::UnixEpoch())));
  server_->Wait();
  server_ = nullptr;
}

}  // namespace linnet::server
