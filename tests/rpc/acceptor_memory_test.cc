// Runs the acceptor out of memory. A binary of its own, in which every allocation is counted.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "server/base/monotonic.h"
#include "server/port/acceptor.h"
#include "tests/support/allocations.h"

namespace linnet::server {
namespace {

using test::Allocations;

int Connect(int port) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval timeout{.tv_sec = 30, .tv_usec = 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return client;
}

// The number of bytes that the server sends before it closes the connection.
int Answer(int client) {
  char bytes[8];
  const ssize_t read = recv(client, bytes, sizeof bytes, 0);
  close(client);
  return read > 0 ? static_cast<int>(read) : 0;
}

// For every allocation of its thread that fails: that connection is served or closed, and the next
// one is served.
TEST(AcceptorMemoryTest, OutOfMemoryClosesOneConnectionAlone) {
  int closed = 0;
  for (int64_t n = 1;; ++n) {
    Connections connections({.connections = 16});
    auto acceptor = Acceptor::Listen("127.0.0.1:0", absl::InfiniteDuration(), connections);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    (*acceptor)->Start([](int socket) {
      Allocations::MayFail(true);
      send(socket, "a", 1, MSG_NOSIGNAL);
      shutdown(socket, SHUT_RDWR);  // as gRPC does
      close(socket);
    });
    const int port = (*acceptor)->port();
    EXPECT_EQ(Answer(Connect(port)), 1);
    Allocations::FailNth(n);
    closed += 1 - Answer(Connect(port));
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    EXPECT_EQ(Answer(Connect(port)), 1) << n;
    const MonotonicTime end = After(MonotonicNow(), absl::Seconds(30));
    while (connections.open() > 0 && MonotonicNow() < end) std::this_thread::yield();
    EXPECT_EQ(connections.open(), 0) << n;
    if (!reached) break;
  }
  EXPECT_GE(closed, 3);
}

}  // namespace
}  // namespace linnet::server
