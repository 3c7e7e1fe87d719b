#include "server/port/port.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <future>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/thread_priority.h"
#include "server/config/address.h"

namespace linnet::server {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
}

// A client that uses reflection occupies a thread for any length of time, because gRPC's reflection
// service is synchronous. Clients above this limit are refused with RESOURCE_EXHAUSTED.
constexpr int kReflectionThreads = 16;
// Max time for TLS and the start of HTTP/2, if unauthenticated-timeout is not shorter. A client
// needs a few round trips; gRPC's default is 120 s.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);
// Bytes of the headers of a call; twice the default of gRPC, for gateways that add some.
constexpr int kMaxMetadataBytes = 16 << 10;
// Concurrent calls on one connection: HTTP/2 recommends to allow no fewer. More hold more memory of
// a peer that is not known yet (tests/e2e/security/unauthenticated_test.py).
constexpr int64_t kMaxStreams = 100;
// Bytes that a connection may send before its client is known; see ConnectionLimits.
constexpr int64_t kFirstBytes = 256 << 10;

// Arguments of the patched gRPC, which enforces the limits as it reads; the acceptor only measures
// afterwards.
constexpr char kMaxHeldBeforeMessage[] = "linnet.max_held_before_message";
constexpr char kMaxHeldInMessages[] = "linnet.max_held_in_messages";

// The largest value of an argument: 2 GiB.
int Bytes(int64_t bytes) {
  return static_cast<int>(std::min<int64_t>(bytes, std::numeric_limits<int>::max()));
}

void SetLimits(const SecurityOptions& security, grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("linnet");
  quota.Resize(static_cast<size_t>(security.max_transport_bytes));
  quota.SetMaxThreads(kReflectionThreads);
  builder.SetResourceQuota(quota);
  // Connections are closed periodically, so that revoked certificates lose theirs and new replicas
  // get some.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                             Milliseconds(security.max_connection_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                             Milliseconds(security.max_connection_age_grace));
  // gRPC decompresses a message before it compares its size with the limit: 4 MiB may become 4 GB.
  // A call that announces compression is refused, and a message that is compressed all the same is
  // not decompressed.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(kMaxStreams));
  // With tokens calls without one are ended before their messages are read.
  if (security.tokens.empty() && security.max_unauthenticated_bytes > 0) {
    builder.AddChannelArgument(kMaxHeldBeforeMessage, Bytes(security.max_unauthenticated_bytes));
  }
  // Below the quota, at which gRPC resets calls of any client.
  builder.AddChannelArgument(kMaxHeldInMessages, Bytes(security.max_transport_bytes / 2));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             Milliseconds(security.max_connection_age));
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      Milliseconds(std::min(kHandshakeTimeout, security.unauthenticated_timeout)));
  // Detects dead clients, even while there is nothing to send.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(security.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(security.keepalive));
  // Clients may ping too, at most every ten seconds, even between calls.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

Connections::Limits ConnectionLimits(const SecurityOptions& security, int64_t max_request_bytes) {
  const bool tokens = !security.tokens.empty();
  return {.connections = security.max_connections,
          .connections_per_address = security.max_connections_per_address,
          .timeout = security.unauthenticated_timeout,
          .bytes = security.max_unauthenticated_bytes,
          .bytes_per = std::max(kFirstBytes, kMaxStreams * Connections::kCallBytes) +
                       (tokens ? 0 : max_request_bytes),
          // All concurrent calls, and half as many again after some of them have ended.
          .calls_per = 3 * kMaxStreams / 2,
          .tokens = tokens};
}

absl::StatusOr<std::unique_ptr<Port>> Port::Open(const Setup& setup,
                                                 const SecurityOptions& security) {
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<Port> port(new Port);
  auto acceptor = Acceptor::Listen(setup.address, 2 * security.keepalive, *setup.connections);
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
  for (grpc::Service* service : setup.services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(Bytes(setup.max_request_bytes));
  // gRPC's threads inherit the priority of the one that starts them.
  port->server_ = std::async(std::launch::async, [&builder] {
                    YieldToEngines();
                    return builder.BuildAndStart();
                  }).get();
  if (port->server_ == nullptr)
    return absl::InternalError(absl::StrCat("gRPC does not serve on ", setup.address));
  port->acceptor_->Start([&connections = *port->connections_](int socket) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    connections.HandleNewConnection(&connection);
  });
  return port;
}

Port::~Port() { Close(MonotonicNow()); }

void Port::Close(MonotonicTime deadline) {
  if (server_ == nullptr) return;
  acceptor_->Close();
  // gRPC takes a date, and converts it to its monotonic clock at once.
  server_->Shutdown(absl::ToChronoTime(absl::Now() + Elapsed(MonotonicNow(), deadline)));
  server_->Wait();
  server_ = nullptr;
}

}  // namespace linnet::server
