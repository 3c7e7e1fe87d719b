// Tests reading a page over HTTP from a peer that is slow or does not accept the connection.
#include "client/load/http.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Milliseconds(300);

// A listening socket of this machine whose connections nobody accepts by itself.
class Listener {
 public:
  explicit Listener(int backlog) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(socket_, backlog), 0);
    socklen_t size = sizeof address_;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size);
  }
  ~Listener() { close(socket_); }

  std::string url() const {
    return absl::StrCat("http://127.0.0.1:", ntohs(address_.sin_port), "/metrics");
  }
  int socket_of() const { return socket_; }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

 private:
  const int socket_;
  sockaddr_in address_ = {};
};

TEST(HttpTest, GivesUpConnectingInTime) {
  const Listener listener(0);
  std::vector<int> waiting;  // fill its queue, so that the next handshake is not answered
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    std::ignore = connect(waiting.back(), listener.address(), sizeof(sockaddr_in));
  }
  EXPECT_THAT(HttpGet(listener.url(), kTimeout),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("timed out")));
  for (const int descriptor : waiting) close(descriptor);
}

TEST(HttpTest, GivesUpAPeerThatSendsAByteNowAndThen) {
  const Listener listener(1);
  std::atomic<bool> ended = false;
  std::thread peer([&] {
    const int connection = accept(listener.socket_of(), nullptr, nullptr);
    while (!ended && send(connection, "H", 1, MSG_NOSIGNAL) == 1) absl::SleepFor(kTimeout / 10);
    close(connection);
  });
  EXPECT_THAT(HttpGet(listener.url(), kTimeout),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("timed out")));
  ended = true;
  peer.join();
}

}  // namespace
}  // namespace linnet::client
