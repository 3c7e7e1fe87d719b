#include "client/library/client.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/client/client_fixture.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ClientTest, TranslatesAndSummarizesInOrder) {
  Client client = Connect(Options());
  const auto translated = client.Translate(ToGerman({"one", "two", "Grüße 🐦"}));
  ASSERT_THAT(translated, IsOk());
  ASSERT_EQ(translated->translations_size(), 3);
  EXPECT_EQ(translated->translations(0).text(), "[de] one");
  EXPECT_EQ(translated->translations(2).text(), "[de] Grüße 🐦");
  EXPECT_EQ(translated->model(), "fake");

  v1::SummarizeRequest request;
  request.add_contents("long");
  const auto summarised = client.Summarize(request);
  ASSERT_THAT(summarised, IsOk());
  EXPECT_EQ(summarised->summaries(0).text(), "[sum] long");
}

TEST_F(ClientTest, RequestArrivesUnchanged) {
  Client client = Connect(Options());
  v1::TranslateRequest request = ToGerman({"one"});
  request.set_model("en-de");
  request.mutable_options()->set_beam_size(3);
  ASSERT_THAT(client.Translate(request), IsOk());
  ASSERT_THAT(server_.translate_requests(), SizeIs(1));
  EXPECT_EQ(server_.translate_requests()[0].SerializeAsString(), request.SerializeAsString());
}

TEST_F(ClientTest, ReturnsTextsOfMegabytes) {
  std::string text;
  while (text.size() < 3 << 20) absl::StrAppend(&text, text.size(), " birds and a größer one\n");
  Client client = Connect(Options());
  const auto response = client.Translate(ToGerman({text}));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->translations(0).text(), "[de] " + text);
}

TEST_F(ClientTest, ReplyTooLargeIsExplained) {
  ClientOptions options = Options();
  options.max_reply_bytes = 100;
  options.retry.max_attempts = 1;
  Client client = Connect(options);
  const absl::Status status = client.Translate(ToGerman({std::string(200, 'x')})).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange,
                               HasSubstr("this client takes at most 100: send less text at once")));
  EXPECT_EQ(DetailsOf(status).reason, "REPLY_TOO_LARGE");
}

TEST_F(ClientTest, ListsModels) {
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  Client client = Connect(Options());
  const auto models = client.ListModels();
  ASSERT_THAT(models, IsOk());
  ASSERT_EQ(models->models_size(), 1);
  EXPECT_EQ(models->models(0).name(), "en-de");
}

TEST_F(ClientTest, HealthDistinguishesNotServingAndUnknown) {
  Client client = Connect(Options());
  EXPECT_THAT(client.Health(), IsOk());
  server_.SetServing("linnet.v1.TextService", false);
  EXPECT_THAT(client.Health("linnet.v1.TextService"),
              StatusIs(absl::StatusCode::kUnavailable, "linnet.v1.TextService says NOT_SERVING"));
  server_.SetServing("linnet.v1.TextService", true);
  EXPECT_THAT(client.Health("linnet.v1.TextService"), IsOk());
  EXPECT_THAT(client.Health("no.such.Service"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no.such.Service")));
}

TEST_F(ClientTest, ErrorsKeepCodeMessageAndDetails) {
  Answer({ServerError(grpc::StatusCode::INVALID_ARGUMENT, "beam_size 0 is below 1",
                      "BEAM_SIZE_OUT_OF_RANGE", "options.beam_size")});
  Client client = Connect(Options());
  const absl::Status status = client.Translate(ToGerman({"one"})).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "beam_size 0 is below 1"));
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo");
  ASSERT_TRUE(payload.has_value());
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(std::string(*payload)));
  EXPECT_EQ(info.reason(), "BEAM_SIZE_OUT_OF_RANGE");
  EXPECT_EQ(ErrorText(status),
            "INVALID_ARGUMENT: beam_size 0 is below 1\n"
            "  field options.beam_size\n"
            "  reason BEAM_SIZE_OUT_OF_RANGE limit=9");
}

TEST_F(ClientTest, ServerThatShutsDownIsNotUnreachable) {
  Answer({ServerError(grpc::StatusCode::UNAVAILABLE, "shutting down", "DRAINING")});
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"one"})),
              StatusIs(absl::StatusCode::kUnavailable, "shutting down"));
}

TEST_F(ClientTest, SlowCallEndsAtTheDeadline) {
  server_.on_translate = [this](grpc::ServerContext& context, const auto&, auto&) {
    EXPECT_LT(context.deadline(), std::chrono::system_clock::now() + std::chrono::seconds(1));
    answered_.WaitForNotification();
    return grpc::Status::OK;
  };
  ClientOptions options = Options();
  options.timeout = absl::Milliseconds(200);
  Client client = Connect(options);
  EXPECT_THAT(client.Translate(ToGerman({"one"})),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("no answer from " + server_.address() + " within 200ms")));
  Client slow = Connect(Options());
  CallOptions call;
  call.timeout = absl::Milliseconds(150);
  EXPECT_THAT(slow.Translate(ToGerman({"one"}), call),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 150ms")));
  answered_.Notify();
}

TEST_F(ClientTest, CancelEndsCallsInFlightAndFutureOnes) {
  server_.on_translate = [&](grpc::ServerContext& context, const auto&, auto&) {
    arrived_.Notify();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    seen_cancelled_.Notify();
    return grpc::Status::OK;
  };
  Client client = Connect(Options());
  std::thread canceller([&] {
    arrived_.WaitForNotification();
    client.Cancel();
  });
  EXPECT_THAT(client.Translate(ToGerman({"one"})), StatusIs(absl::StatusCode::kCancelled));
  canceller.join();
  EXPECT_TRUE(seen_cancelled_.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_THAT(client.Translate(ToGerman({"two"})), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(server_.translate_requests(), SizeIs(1));
}

TEST_F(ClientTest, ManyThreadsMayCallAtOnce) {
  Client client = Connect(Options());
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int call = 0; call < 20; ++call) {
        const std::string text = absl::StrCat("text ", thread, " ", call);
        const auto response = client.Translate(ToGerman({text}));
        if (response.ok() && response->translations(0).text() == "[de] " + text) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
}

TEST_F(ClientTest, RefusesInvalidUtf8BeforeSending) {
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"fine", "caf\xE9"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "contents[1] is not UTF-8: byte 0xe9 at offset 3"));
  v1::TranslateRequest request = ToGerman({"fine"});
  request.set_target_language_code("d\xFF");
  EXPECT_THAT(client.Translate(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("target_language_code")));
  v1::SummarizeRequest summarize;
  summarize.add_contents("\x80");
  EXPECT_THAT(client.Summarize(summarize),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contents[0]")));
  EXPECT_THAT(server_.translate_requests(), IsEmpty());
  EXPECT_THAT(server_.summarize_requests(), IsEmpty());
}

TEST_F(ClientTest, WrongNumberOfAnswersIsAnError) {
  server_.on_translate = [](auto&, const auto&, v1::TranslateResponse& response) {
    response.add_translations();
    return grpc::Status::OK;
  };
  Client client = Connect(Options());
  EXPECT_THAT(client.Translate(ToGerman({"one", "two"})),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("2 texts with 1 results")));
}

TEST(ClientOptionsTest, RefusesInvalidOptionsWithTheirValue) {
  const auto refusal = [](auto change) {
    ClientOptions options;
    change(options);
    return std::string(Client::Create(options).status().message());
  };
  EXPECT_THAT(refusal([](ClientOptions& o) { o.server = "host"; }), HasSubstr("\"host\""));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.server = ""; }), HasSubstr("\"\""));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.server = ":50051"; }), HasSubstr("HOST:PORT"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.server = "host:99999"; }), HasSubstr("65535"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.server = "::1:50051"; }), HasSubstr("[::1]"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.timeout = absl::ZeroDuration(); }),
              HasSubstr("timeout is 0"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.timeout = absl::InfiniteDuration(); }),
              HasSubstr("timeout is inf"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.wait = absl::Seconds(-1); }),
              HasSubstr("wait is -1s"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.retry.max_attempts = 6; }), HasSubstr("6"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.retry.max_backoff = absl::ZeroDuration(); }),
              HasSubstr("back-off"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.retry.max_backoff = absl::InfiniteDuration(); }),
              HasSubstr("max_backoff is inf"));
  EXPECT_THAT(refusal([](ClientOptions& o) { o.max_reply_bytes = 0; }), HasSubstr("0"));
  for (const char* server :
       {"localhost:1", "[::1]:50051", "unix:linnet.sock", "dns:///host:50051", "dns:host",
        "dns:///[::1]", "dns:///2001:db8::1", "ipv4:127.0.0.1:1,127.0.0.2:2", "ipv6:[::1]:1"}) {
    EXPECT_THAT(refusal([&](ClientOptions& o) { o.server = server; }), IsEmpty()) << server;
  }
  for (const char* server :
       {"dns:///host:65536", "dns:host:0", "dns:///", "dns:", "ipv4:127.0.0.1:1,127.0.0.2:70000",
        "ipv4:127.0.0.1", "ipv6:[::1]:70000", "ipv6:[::1]"}) {
    EXPECT_THAT(refusal([&](ClientOptions& o) { o.server = server; }),
                HasSubstr("… with ports of 1 to 65535"))
        << server;
  }
  for (const char* server : {"dns:///one:1,other:2", "unix:a,b"}) {
    EXPECT_THAT(refusal([&](ClientOptions& o) { o.server = server; }), HasSubstr("has a comma"))
        << server;
  }
}

TEST(ClientOptionsTest, VersionIsThreeNumbers) {
  EXPECT_THAT(Version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace linnet::client
