#include "server/port/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/monotonic.h"
#include "tests/support/client_socket.h"

namespace linnet::server {
namespace {

using Client = test::ClientSocket;

constexpr absl::Duration kSoon = absl::Seconds(30);

int64_t OpenFiles() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// Waits until the condition holds; false on timeout. The acceptor's thread has to notice something
// first.
template <typename Condition>
bool Eventually(Condition condition) {
  const MonotonicTime end = After(MonotonicNow(), kSoon);
  while (!condition()) {
    if (MonotonicNow() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Handles sockets as gRPC does: reads to the end of the stream, shuts the socket down and closes
// it.
void ReadToTheEnd(int socket) {
  std::thread([socket] {
    char data[4096];
    while (true) {
      const ssize_t read = recv(socket, data, sizeof data, 0);
      if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) break;
      std::this_thread::yield();  // the socket is non-blocking
    }
    shutdown(socket, SHUT_RDWR);
    close(socket);
  }).detach();
}

std::unique_ptr<Acceptor> Listen(Connections& connections) {
  auto acceptor = Acceptor::Listen("127.0.0.1:0", absl::InfiniteDuration(), connections);
  EXPECT_TRUE(acceptor.ok()) << acceptor.status();
  return *std::move(acceptor);
}

TEST(AcceptorTest, LeavesNoSocketOpen) {
  const int64_t before = OpenFiles();
  {
    Connections connections({.connections = 16, .timeout = absl::Milliseconds(50)});
    const auto acceptor = Listen(connections);
    acceptor->Start(ReadToTheEnd);
    // Socket numbers are reused at once: clients that disconnect, clients closed by the server
    // after the timeout, and clients above the limit, from several threads.
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([port = acceptor->port(), thread] {
        for (int i = 0; i < 300; ++i) {
          const Client client(port);
          EXPECT_TRUE(client.connected());
          if ((i + thread) % 16 != 0) continue;
          EXPECT_TRUE(client.IsClosedByTheServer());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(Eventually([&] { return connections.open() == 0; }));
    EXPECT_GT(connections.expelled(), 0);
  }
  EXPECT_TRUE(Eventually([&] { return OpenFiles() == before; })) << OpenFiles() << " " << before;
}

TEST(AcceptorTest, ClosesOnlyConnectionsThatSendTooMuch) {
  Connections connections({.bytes_per = 100'000});
  const auto acceptor = Listen(connections);
  acceptor->Start(ReadToTheEnd);
  {
    const Client quiet(acceptor->port());
    const Client loud(acceptor->port());
    quiet.Send(50'000);
    loud.Send(100'001);
    EXPECT_TRUE(loud.IsClosedByTheServer());
    EXPECT_EQ(connections.expelled(), 1);
    EXPECT_TRUE(Eventually([&] { return connections.open() == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return connections.open() == 0; }));
}

TEST(AcceptorTest, CountsBytesThatAreReadBeforeEpollSeesThem) {
  constexpr int64_t kBytes = 100'001;
  Connections connections({.bytes_per = kBytes - 1});
  const auto acceptor = Listen(connections);
  // The acceptor's thread runs this, and waits for events only after it.
  acceptor->Start([](int socket) {
    int64_t left = kBytes;
    const MonotonicTime end = After(MonotonicNow(), kSoon);
    while (left > 0 && MonotonicNow() < end) {
      char data[4096];
      left -= std::max<ssize_t>(0, recv(socket, data, sizeof data, 0));
    }
    EXPECT_EQ(left, 0);
    ReadToTheEnd(socket);
  });
  const Client client(acceptor->port());
  client.Send(kBytes);
  EXPECT_TRUE(client.IsClosedByTheServer());
  EXPECT_EQ(connections.expelled(), 1);
}

TEST(AcceptorTest, WatchesConnectionsAfterClose) {
  Connections connections({.connections = 2});
  const auto acceptor = Listen(connections);
  acceptor->Start(ReadToTheEnd);
  {
    const Client client(acceptor->port());
    EXPECT_TRUE(Eventually([&] { return connections.open() == 1; }));
    acceptor->Close();
    EXPECT_FALSE(Client(acceptor->port()).connected());
    EXPECT_EQ(connections.open(), 1);
  }
  EXPECT_TRUE(Eventually([&] { return connections.open() == 0; }));
}

TEST(AcceptorTest, ExceptionClosesOneConnectionAlone) {
  Connections connections({.connections = 16});
  const auto acceptor = Listen(connections);
  bool first = true;
  acceptor->Start([&](int socket) {
    ReadToTheEnd(socket);
    if (std::exchange(first, false)) throw std::bad_alloc();
  });
  const Client unlucky(acceptor->port());
  EXPECT_TRUE(unlucky.IsClosedByTheServer());
  {
    const Client client(acceptor->port());
    EXPECT_TRUE(client.connected());
    EXPECT_TRUE(Eventually([&] { return connections.open() == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return connections.open() == 0; }));
}

}  // namespace
}  // namespace linnet::server
