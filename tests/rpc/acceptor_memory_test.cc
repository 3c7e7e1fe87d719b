// Runs the acceptor out of memory. A binary of its own, in which every allocation is counted.
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "server/base/monotonic.h"
#include "server/port/acceptor.h"
#include "tests/support/allocations.h"
#include "tests/support/client_socket.h"

namespace linnet::server {
namespace {

using test::Allocations;
using test::ClientSocket;

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
    EXPECT_TRUE(ClientSocket(port).ReceivesOneByte());
    Allocations::FailNth(n);
    closed += ClientSocket(port).ReceivesOneByte() ? 0 : 1;
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    EXPECT_TRUE(ClientSocket(port).ReceivesOneByte()) << n;
    const MonotonicTime end = After(MonotonicNow(), absl::Seconds(30));
    while (connections.open() > 0 && MonotonicNow() < end) std::this_thread::yield();
    EXPECT_EQ(connections.open(), 0) << n;
    if (!reached) break;
  }
  EXPECT_GE(closed, 3);
}

}  // namespace
}  // namespace linnet::server
