#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/client_fixture.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using ClientWaitTest = ClientTest;

TEST_F(ClientWaitTest, NamesUnreachableServer) {
  const ClosedPort closed;
  ClientOptions options = Options();
  options.server = closed.address();
  Client client = Connect(options);
  EXPECT_THAT(client.Translate(ToGerman({"one"})),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("cannot reach " + closed.address() + ": "),
                             HasSubstr("Connection refused"))));
  EXPECT_THAT(client.Health(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot reach")));
}

TEST_F(ClientWaitTest, RefusedConnectionFailsAtOnce) {
  const ClosedPort closed;
  ClientOptions options = Options();
  options.server = closed.address();
  options.timeout = absl::Hours(2);
  options.retry.initial_backoff = absl::Hours(1);  // a retry would outlast any test
  options.retry.max_backoff = absl::Hours(1);
  Client client = Connect(options);
  const absl::Status status = client.Translate(ToGerman({"one"})).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Connection refused")));
}

TEST_F(ClientWaitTest, WaitThatTimesOutReportsTheCause) {
  const ClosedPort closed;
  ClientOptions options = Options();
  options.server = closed.address();
  options.wait = absl::Milliseconds(20);
  Client client = Connect(options);
  for (const absl::Status& status : {client.ListModels().status(), client.Health()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Connection refused")));
  }
}

TEST_F(ClientWaitTest, WaitsForAStartingServer) {
  auto closed = std::make_unique<ClosedPort>();
  ClientOptions options = Options();
  options.server = closed->address();
  options.wait = absl::Seconds(60);
  Client client = Connect(options);
  absl::StatusOr<v1::TranslateResponse> response;
  std::thread caller([&] { response = client.Translate(ToGerman({"one"})); });
  closed.reset();
  const FakeServer late(options.server);
  caller.join();
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->translations(0).text(), "[de] one");
}

TEST_F(ClientWaitTest, WaitsForAStartingServerBehindAProxy) {
  for (const bool enough : {true, false}) {
    const FakeProxy proxy(enough ? 2 : 1000);
    ClientOptions options = Options();
    options.server = proxy.address();
    options.wait = absl::Seconds(enough ? 60 : 2);
    Client client = Connect(options);
    EXPECT_EQ(client.Health().code(),
              enough ? absl::StatusCode::kOk : absl::StatusCode::kUnavailable);
    EXPECT_GE(proxy.checks(), 2);
  }
  const FakeProxy proxy(1);
  ClientOptions options = Options();
  options.server = proxy.address();
  Client client = Connect(options);
  EXPECT_EQ(client.Health().code(), absl::StatusCode::kUnavailable) << "without a wait";
}

TEST_F(ClientWaitTest, CancelEndsTheWaitForAServer) {
  const ClosedPort closed;
  ClientOptions options = Options();
  options.server = closed.address();
  options.wait = absl::Hours(1);
  Client client = Connect(options);
  std::thread canceller([&] { client.Cancel(); });
  EXPECT_THAT(client.ListModels(), StatusIs(absl::StatusCode::kCancelled));
  canceller.join();
}

}  // namespace
}  // namespace linnet::client
