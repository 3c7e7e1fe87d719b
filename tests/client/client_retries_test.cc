#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/client_fixture.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::SizeIs;

using ClientRetriesTest = ClientTest;

TEST_F(ClientRetriesTest, RetriesWhileServerIsBusy) {
  const auto busy = ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY");
  Answer({busy, busy, grpc::Status::OK});
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"one"})), IsOk());
  EXPECT_EQ(calls_, 3);
}

TEST_F(ClientRetriesTest, DoesNotRetryOtherErrors) {
  for (const auto code : {grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::INTERNAL,
                          grpc::StatusCode::CANCELLED, grpc::StatusCode::DEADLINE_EXCEEDED}) {
    calls_ = 0;
    Answer({ServerError(code, "no", "NO"), grpc::Status::OK});
    Client client = Connect(Options());
    EXPECT_FALSE(client.Translate(ToGerman({"one"})).ok());
    EXPECT_EQ(calls_, 1);
  }
}

TEST_F(ClientRetriesTest, AllAttemptsShareOneRequestId) {
  Answer(
      {ServerError(grpc::StatusCode::UNAVAILABLE, "shutting down", "DRAINING"), grpc::Status::OK});
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"one"})), IsOk());
  EXPECT_THAT(client.Translate(ToGerman({"two"})), IsOk());
  const std::vector<std::string> ids = server_.request_ids();
  ASSERT_EQ(ids.size(), 3);
  EXPECT_EQ(ids[0].size(), 32);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[1], ids[2]);
}

// gRPC keeps 256 KiB of a request by default, and does not retry a longer one.
TEST_F(ClientRetriesTest, RetriesARequestOfAMegabyteWhileServerShutsDown) {
  Answer(
      {ServerError(grpc::StatusCode::UNAVAILABLE, "shutting down", "DRAINING"), grpc::Status::OK});
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({std::string(1 << 20, 'a')})), IsOk());
  EXPECT_EQ(calls_, 2);
}

TEST_F(ClientRetriesTest, RetriesUpToMaxAttempts) {
  Answer({ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY")});
  ClientOptions options = Options();
  options.retry.max_attempts = 3;
  Client client = Connect(options);
  EXPECT_THAT(client.Translate(ToGerman({"one"})),
              StatusIs(absl::StatusCode::kResourceExhausted, "busy"));
  EXPECT_EQ(calls_, 3);
}

TEST_F(ClientRetriesTest, RetriesStopWhileMostCallsFail) {
  Answer({ServerError(grpc::StatusCode::UNAVAILABLE, "gone", "DRAINING")});
  ClientOptions options = Options();
  options.retry.max_attempts = 5;
  options.retry.initial_backoff = options.retry.max_backoff = absl::Milliseconds(2);
  Client client = Connect(options);
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(client.Translate(ToGerman({"one"})).ok());
  EXPECT_GE(calls_, 50);
  EXPECT_LT(calls_, 100);  // 150 without the budget of all calls together
}

TEST_F(ClientRetriesTest, ObeysRetryDelayOfTheServer) {
  // The client's own backoff is at most 4 ms; its clock and ours may differ a little.
  constexpr absl::Duration kPause = absl::Milliseconds(200);
  std::vector<absl::Time> calls;
  server_.on_translate = [&](grpc::ServerContext& context, const auto&,
                             v1::TranslateResponse& response) {
    calls.push_back(absl::Now());
    response.add_translations();
    if (calls.size() > 1) return grpc::Status::OK;
    context.AddTrailingMetadata("grpc-retry-pushback-ms", "250");
    return ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY");
  };
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"one"})), IsOk());
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_GE(calls[1] - calls[0], kPause);
}

TEST_F(ClientRetriesTest, DoesNotRetryAgainstTheServersWish) {
  server_.on_translate = [this](grpc::ServerContext& context, const auto&, auto&) {
    ++calls_;
    context.AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
    return ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY");
  };
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"one"})), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(calls_, 1);
}

TEST_F(ClientRetriesTest, OneAttemptMeansNoRetry) {
  Answer({ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY")});
  ClientOptions options = Options();
  options.retry.max_attempts = 1;
  Client client = Connect(options);
  EXPECT_THAT(client.Translate(ToGerman({"one"})), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace linnet::client
