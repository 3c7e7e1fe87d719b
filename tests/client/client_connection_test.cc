// Tests of several servers under one name, of tokens, and of connections that become silent.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/library/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char kService[] = "linnet.v1.TextService";

class ClientConnectionTest : public ::testing::Test {
 protected:
  static size_t Calls(const FakeServer& server) { return server.translate_requests().size(); }

  const test::TemporaryFolder folder_;
};

TEST_F(ClientConnectionTest, BalancesCallsOverAllAddresses) {
  const FakeServer first, second;
  Client client = Connect(QuickOptions(first.address() + "," + second.address()));
  // Once both are connected, calls alternate between them.
  while (Calls(first) == 0 || Calls(second) == 0) {
    ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  }
  const size_t before_first = Calls(first), before_second = Calls(second);
  for (int call = 0; call < 10; ++call) ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_EQ(Calls(first), before_first + 5);
  EXPECT_EQ(Calls(second), before_second + 5);
}

TEST_F(ClientConnectionTest, SkipsUnreachableServer) {
  const ClosedPort closed;
  const FakeServer server;
  Client client = Connect(QuickOptions(closed.address() + "," + server.address()));
  for (int call = 0; call < 5; ++call) ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_EQ(Calls(server), 5);
}

// An address at which the system answers no connection: its queue is full.
class SilentPort {
 public:
  SilentPort() {
    EXPECT_EQ(bind(sockets_[0], reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(listen(sockets_[0], 0), 0);
    socklen_t size = sizeof address_;
    EXPECT_EQ(getsockname(sockets_[0], reinterpret_cast<sockaddr*>(&address_), &size), 0);
    for (int i : {1, 2}) connect(sockets_[i], reinterpret_cast<sockaddr*>(&address_), size);
  }
  ~SilentPort() {
    for (int socket : sockets_) close(socket);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", ntohs(address_.sin_port)); }

 private:
  static int Socket() { return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); }
  sockaddr_in address_ = {
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  const int sockets_[3] = {Socket(), Socket(), Socket()};
};

TEST_F(ClientConnectionTest, SkipsSilentServer) {
  const SilentPort silent;
  const FakeServer server;
  ClientOptions options = QuickOptions(silent.address() + "," + server.address());
  options.timeout = absl::Seconds(10);  // gRPC waits 20 s for a connection
  Client client = Connect(options);
  ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_EQ(Calls(server), 1);
}

TEST_F(ClientConnectionTest, SaysThatASilentServerHangs) {
  const SilentPort silent;
  ClientOptions options = QuickOptions(silent.address());
  options.timeout = absl::Milliseconds(200);
  EXPECT_THAT(Connect(options).Translate(ToGerman({"text"})).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("200ms: it hangs, or does")));
}

TEST_F(ClientConnectionTest, SkipsServerWhileNotServing) {
  FakeServer first, second;
  first.SetServing(kService, false);
  Client client = Connect(QuickOptions(first.address() + "," + second.address()));
  for (int call = 0; call < 6; ++call) ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_EQ(Calls(first), 0);
  first.SetServing(kService, true);
  second.SetServing(kService, false);
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (Calls(first) == 0 && absl::Now() < end) {
    ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  }
  EXPECT_GT(Calls(first), 0);
}

TEST_F(ClientConnectionTest, ExplainsThatNoServerIsServing) {
  FakeServer server;
  server.SetServing(kService, false);
  ClientOptions options = QuickOptions("dns:///" + server.address());
  options.retry.max_attempts = 1;
  Client client = Connect(options);
  EXPECT_THAT(client.Translate(ToGerman({"text"})),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("takes no calls now")));
  EXPECT_THAT(client.Health(), IsOk()) << "its health can be checked";
  EXPECT_THAT(client.Health(kService),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("NOT_SERVING")));
}

TEST_F(ClientConnectionTest, CallsSingleAddressDespiteItsHealth) {
  FakeServer server;
  server.SetServing(kService, false);
  Client client = Connect(QuickOptions(server.address()));
  EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
}

TEST_F(ClientConnectionTest, RefusesNamesInAddressList) {
  for (const char* server : {"host:1,127.0.0.1:2", "127.0.0.1:1,[::1]:2", "127.0.0.1:1,", ",",
                             "127.0.0.1:1,127.0.0.1"}) {
    EXPECT_THAT(Client::Create(QuickOptions(server)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dns:///HOST:PORT")))
        << server;
  }
  EXPECT_THAT(Client::Create(QuickOptions("[::1]:1,[::1]:2")).status(), IsOk());
}

TEST_F(ClientConnectionTest, SendsTokenAndRereadsItsFile) {
  const FakeServer server;
  const std::string path = folder_.path() / "token";
  const auto write = [&path](const std::string& token) {
    std::ofstream(path + ".new") << token;
    std::rename((path + ".new").c_str(), path.c_str());
  };
  write("first-token\n");
  ClientOptions options = QuickOptions(server.address());
  options.token_file = path;
  Client client = Connect(options);
  EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  write("\uFEFFsecond-token\r\n");  // as an editor for Windows writes it
  EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  write("");  // a new token is being written
  EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  std::remove(path.c_str());
  EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer first-token", "Bearer second-token",
                                                   "Bearer second-token", "Bearer second-token"));
}

TEST_F(ClientConnectionTest, TokenIsNeverSentInPlainTextNorShown) {
  const std::string path = folder_.path() / "token";
  std::ofstream(path) << "secret-token";
  ClientOptions options = QuickOptions("translate.example:50051");
  options.token_file = path;
  for (const char* server : {"translate.example:50051", "dns:///localhost.attacker.example:1",
                             "127.0.0.1:1,10.0.0.1:2", "127.0.0.1.attacker.example:50051",
                             "localhost.attacker.example:1", "unix.attacker.example:1"}) {
    options.server = server;
    EXPECT_THAT(Client::Create(options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in plain text")))
        << server;
  }
  options.tls.enabled = true;
  EXPECT_THAT(Client::Create(options).status(), IsOk());
  for (const char* server : {"localhost:1", "LOCALHOST:1", "dns:///localhost:1", "127.0.0.2:1",
                             "[::1]:1", "unix:linnet.sock"}) {
    options = QuickOptions(server);
    options.token_file = path;
    EXPECT_THAT(Client::Create(options).status(), IsOk()) << server;
  }
  for (const char* content : {"", "secret-token\nand more", " \n", "secret-tok\xC3\xA9n"}) {
    std::ofstream(path) << content;
    EXPECT_THAT(Client::Create(options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::AllOf(HasSubstr("holds no token"), Not(HasSubstr("secret")))));
  }
  options.token_file = folder_.path() / "none";
  EXPECT_THAT(Client::Create(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("No such file")));
}

TEST_F(ClientConnectionTest, NamesUnreadableCertificates) {
  const std::string path = folder_.path() / "file";
  std::ofstream(path) << "something";
  const auto refusal = [](const std::string& ca, const std::string& certificate,
                          const std::string& key) {
    ClientOptions options = QuickOptions("localhost:1");
    options.tls.ca_file = ca;
    options.tls.certificate_file = certificate;
    options.tls.key_file = key;
    return std::string(Client::Create(options).status().message());
  };
  EXPECT_THAT(refusal("/no/ca.pem", "", ""), HasSubstr("authorities \"/no/ca.pem\": No such"));
  EXPECT_THAT(refusal("", path, ""), HasSubstr("needs its key"));
  EXPECT_THAT(refusal(path, "", ""), HasSubstr("it holds no certificate in PEM"));
  std::ofstream(path) << "about it:\n-----BEGIN CERTIFICATE-----\n";
  EXPECT_THAT(refusal(path, "", ""), IsEmpty());
  EXPECT_THAT(refusal("", path, "/no/key.pem"), HasSubstr("key \"/no/key.pem\""));
  EXPECT_THAT(refusal("", path, path), HasSubstr("it holds no private key in PEM"));
  std::ofstream(path, std::ios::app) << "-----BEGIN EC PRIVATE KEY-----\n";
  EXPECT_THAT(refusal("", path, path), IsEmpty());
}

TEST_F(ClientConnectionTest, TlsToAListNeedsTheNameInTheCertificates) {
  ClientOptions options = QuickOptions("127.0.0.1:1,127.0.0.2:1");
  options.tls.enabled = true;
  EXPECT_THAT(Client::Create(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the server name of TLS")));
  options.tls.server_name = "translate.example";
  EXPECT_THAT(Client::Create(options).status(), IsOk());
}

// A proxy for one connection that forwards bytes in both directions until Silence(), and then keeps
// the connection open.
class Relay {
 public:
  explicit Relay(int to_port) : to_port_(to_port), listener_(Socket()) {
    EXPECT_EQ(bind(listener_, Generic(0), sizeof address_), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    socklen_t size = sizeof address_;
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
    name_ = absl::StrCat("127.0.0.1:", ntohs(address_.sin_port));
    thread_ = std::thread([this] {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      const int server = Socket();
      EXPECT_EQ(connect(server, Generic(to_port_), sizeof address_), 0);
      std::thread back([&] { Pass(server, client); });
      Pass(client, server);
      back.join();
      close(server);
      close(client);
    });
  }
  ~Relay() {
    ended_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  const std::string& name() const { return name_; }
  void Silence() { silent_ = true; }

 private:
  static int Socket() { return socket(AF_INET, SOCK_STREAM, 0); }
  sockaddr* Generic(int port) {
    address_ = {};
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address_.sin_port = htons(port);
    return reinterpret_cast<sockaddr*>(&address_);
  }
  void Pass(int from, int to) {
    timeval timeout = {0, 20000};
    setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    char bytes[1 << 14];
    while (!ended_) {
      const ssize_t count = read(from, bytes, sizeof bytes);
      if (count == 0) return;
      if (count > 0 && !silent_ && write(to, bytes, count) != count) return;
    }
  }

  const int to_port_;
  const int listener_;
  sockaddr_in address_;
  std::string name_;
  std::atomic<bool> silent_ = false, ended_ = false;
  std::thread thread_;
};

TEST_F(ClientConnectionTest, KeepaliveDetectsSilentConnection) {
  absl::Notification arrived, released;
  FakeServer server;
  server.on_translate = [&](auto&, const auto&, auto&) {
    arrived.Notify();
    released.WaitForNotification();
    return grpc::Status::OK;
  };
  Relay relay(std::stoi(server.address().substr(server.address().rfind(':') + 1)));
  ClientOptions options = QuickOptions(relay.name());
  options.timeout = absl::Hours(1);
  options.retry.max_attempts = 1;
  options.keepalive = absl::Milliseconds(200);
  Client client = Connect(options);
  std::thread silencer([&] {
    arrived.WaitForNotification();
    relay.Silence();
  });
  EXPECT_THAT(client.Translate(ToGerman({"text"})), StatusIs(absl::StatusCode::kUnavailable));
  silencer.join();
  released.Notify();
}

TEST_F(ClientConnectionTest, FirstCallTakesNoLongerThanItsTimeout) {
  FakeServer server;
  Relay relay(std::stoi(server.address().substr(server.address().rfind(':') + 1)));
  relay.Silence();  // it accepts connections, and nothing comes back
  ClientOptions options = QuickOptions(relay.name());
  options.timeout = absl::Hours(1);
  Client client = Connect(options);
  CallOptions quick;
  quick.timeout = absl::Milliseconds(50);
  EXPECT_THAT(client.Translate(ToGerman({"text"}), quick),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 50ms")));
  absl::Notification ended;
  client.TranslateAsync(
      ToGerman({"text"}),
      [&](const absl::StatusOr<v1::TranslateResponse>& response) {
        EXPECT_THAT(response,
                    StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 50ms")));
        ended.Notify();
      },
      quick);
  ended.WaitForNotification();
}

// Several servers and one client that balances its calls over them.
class DeadlineTooCloseTest : public ClientConnectionTest {
 protected:
  DeadlineTooCloseTest() {
    for (int i = 0; i < 2; ++i) {
      servers_[i].on_translate = [this, i](auto&, const auto& request,
                                           v1::TranslateResponse& response) {
        ++calls_[i];
        if (too_busy_[i])
          return ServerError(grpc::StatusCode::DEADLINE_EXCEEDED, "busy", "DEADLINE_TOO_CLOSE");
        for (int n = 0; n < request.contents_size(); ++n) response.add_translations();
        return grpc::Status::OK;
      };
    }
  }
  Client ToBoth(int max_attempts = 5) {
    ClientOptions options =
        QuickOptions(absl::StrCat(servers_[0].address(), ",", servers_[1].address()));
    options.retry.max_attempts = max_attempts;
    Client client = Connect(options);
    // One connection may be established before the other.
    while (calls_[0] == 0 || calls_[1] == 0)
      EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
    calls_[0] = calls_[1] = 0;
    return client;
  }

  FakeServer servers_[2];
  std::atomic<int> calls_[2] = {0, 0};
  std::atomic<bool> too_busy_[2] = {false, false};
};

TEST_F(DeadlineTooCloseTest, RetriesAtTheNextServer) {
  Client client = ToBoth();
  too_busy_[0] = true;
  for (int i = 0; i < 6; ++i) EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_GT(calls_[0], 0);
  std::promise<absl::Status> promise[2];
  for (auto& each : promise) {
    client.TranslateAsync(ToGerman({"text"}),
                          [&](auto response) { each.set_value(response.status()); });
    EXPECT_THAT(each.get_future().get(), IsOk());
  }
}

TEST_F(DeadlineTooCloseTest, RetriesOnlyOnce) {
  Client client = ToBoth();
  too_busy_[0] = too_busy_[1] = true;
  EXPECT_THAT(client.Translate(ToGerman({"text"})),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "busy"));
  EXPECT_EQ(calls_[0] + calls_[1], 2);
  std::promise<absl::Status> promise;
  client.TranslateAsync(ToGerman({"text"}),
                        [&](auto response) { promise.set_value(response.status()); });
  EXPECT_THAT(promise.get_future().get(), StatusIs(absl::StatusCode::kDeadlineExceeded, "busy"));
  EXPECT_EQ(calls_[0] + calls_[1], 4);
}

TEST_F(DeadlineTooCloseTest, OneAttemptMeansNoRetry) {
  Client client = ToBoth(1);
  too_busy_[0] = too_busy_[1] = true;
  EXPECT_THAT(client.Translate(ToGerman({"text"})),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "busy"));
  EXPECT_EQ(calls_[0] + calls_[1], 1);
}

TEST_F(DeadlineTooCloseTest, DoesNotRetryWithOneServer) {
  too_busy_[0] = true;
  Client client = Connect(QuickOptions(servers_[0].address()));
  EXPECT_THAT(client.Translate(ToGerman({"text"})),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "busy"));
  EXPECT_EQ(calls_[0], 1);
}

}  // namespace
}  // namespace linnet::client
