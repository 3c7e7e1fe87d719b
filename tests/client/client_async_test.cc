// Tests of asynchronous calls, documents and the cancellation of single calls.
#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/library/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class ClientAsyncTest : public ::testing::Test {
 protected:
  ClientOptions Options() const { return QuickOptions(server_.address()); }
  static std::future<absl::StatusOr<v1::TranslateResponse>> Ask(Client& client,
                                                                const v1::TranslateRequest& request,
                                                                const CallOptions& options = {}) {
    auto answer = std::make_shared<std::promise<absl::StatusOr<v1::TranslateResponse>>>();
    client.TranslateAsync(
        request,
        [answer](absl::StatusOr<v1::TranslateResponse> response) {
          answer->set_value(std::move(response));
        },
        options);
    return answer->get_future();
  }
  // Lines that a document reads one after the other.
  static NextLine Lines(std::vector<std::string> lines) {
    auto next = std::make_shared<std::atomic<size_t>>(0);
    return [lines, next]() -> std::optional<std::string> {
      const size_t index = (*next)++;
      if (index < lines.size()) return lines[index];
      return std::nullopt;
    };
  }
  void AnswerUntilCancelled() {
    server_.on_translate = [this](grpc::ServerContext& context, const auto&, auto&) {
      arrived_.Notify();
      while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
      return grpc::Status::OK;
    };
  }

  absl::Notification arrived_, answered_;
  FakeServer server_;
};

TEST_F(ClientAsyncTest, OneThreadHasManyCallsInFlight) {
  absl::BlockingCounter arrived(8);
  server_.on_translate = [&](auto&, const v1::TranslateRequest& request,
                             v1::TranslateResponse& response) {
    arrived.DecrementCount();
    answered_.WaitForNotification();
    response.add_translations()->set_text(request.contents(0) + "!");
    return grpc::Status::OK;
  };
  Client client = Connect(Options());
  std::vector<std::future<absl::StatusOr<v1::TranslateResponse>>> answers;
  for (int call = 0; call < 8; ++call) {
    answers.push_back(Ask(client, ToGerman({absl::StrCat("text ", call)})));
  }
  arrived.Wait();  // until all have arrived, before any is answered
  answered_.Notify();
  for (int call = 0; call < 8; ++call) {
    const auto response = answers[call].get();
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->translations(0).text(), absl::StrCat("text ", call, "!"));
  }
}

TEST_F(ClientAsyncTest, EachMethodReturnsItsAnswer) {
  Client client = Connect(Options());
  std::promise<std::string> summary, language;
  std::promise<float> score;
  v1::SummarizeRequest summarize;
  summarize.add_contents("long");
  client.SummarizeAsync(summarize,
                        [&](auto response) { summary.set_value(response->summaries(0).text()); });
  v1::ScoreRequest pair;
  pair.add_pairs()->set_target_text("Ja.");
  client.ScoreAsync(pair, [&](auto response) { score.set_value(response->scores(0).score()); });
  v1::DetectLanguageRequest detect;
  detect.add_contents("Hund");
  client.DetectLanguageAsync(detect, [&](auto response) {
    language.set_value(response->detections(0).languages(0).language_code());
  });
  EXPECT_EQ(summary.get_future().get(), "[sum] long");
  EXPECT_EQ(score.get_future().get(), -3);
  EXPECT_EQ(language.get_future().get(), "de");
}

TEST_F(ClientAsyncTest, ErrorsEqualThoseOfBlockingCalls) {
  int calls = 0;
  server_.on_translate = [&calls](auto&, const auto&, v1::TranslateResponse& response) {
    if (++calls == 1) return ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY");
    response.add_translations();
    if (calls == 2) return grpc::Status::OK;
    response.add_translations();
    return calls == 3 ? grpc::Status::OK
                      : ServerError(grpc::StatusCode::INVALID_ARGUMENT, "no", "NO");
  };
  Client client = Connect(Options());
  EXPECT_THAT(Ask(client, ToGerman({"busy, then answered"})).get(), IsOk());
  EXPECT_THAT(Ask(client, ToGerman({"two answers"})).get(),
              StatusIs(absl::StatusCode::kInternal, "the server answered 1 texts with 2 results"));
  const auto refused = Ask(client, ToGerman({"refused"})).get();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, "no"));
  EXPECT_EQ(DetailsOf(refused.status()).reason, "NO");
  EXPECT_THAT(Ask(client, ToGerman({"caf\xE9"})).get(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contents[0] is not UTF-8")));
  EXPECT_EQ(calls, 4);

  const ClosedPort closed;
  ClientOptions options = Options();
  options.server = closed.address();
  for (const absl::Duration wait : {absl::ZeroDuration(), absl::Milliseconds(20)}) {
    options.wait = wait;
    Client lost = Connect(options);
    EXPECT_THAT(Ask(lost, ToGerman({"x"})).get(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Connection refused")));
  }
}

TEST_F(ClientAsyncTest, WaitsForAStartingServerBehindAProxy) {
  for (const bool enough : {true, false}) {
    const FakeProxy proxy(enough ? 2 : 1000);
    ClientOptions options = Options();
    options.server = proxy.address();
    options.wait = absl::Seconds(enough ? 60 : 2);
    Client client = Connect(options);
    // The proxy has no translator, which shows that the call was made.
    EXPECT_EQ(Ask(client, ToGerman({"x"})).get().status().code(),
              enough ? absl::StatusCode::kUnimplemented : absl::StatusCode::kUnavailable);
    EXPECT_GE(proxy.checks(), 2);
  }
}

TEST_F(ClientAsyncTest, CancellationEndsOnlyItsCall) {
  AnswerUntilCancelled();
  Client client = Connect(Options());
  CallOptions options;
  options.cancellation.emplace();
  auto answer = Ask(client, ToGerman({"one"}), options);
  arrived_.WaitForNotification();
  options.cancellation->Cancel();
  EXPECT_THAT(answer.get(), StatusIs(absl::StatusCode::kCancelled, "cancelled"));
  EXPECT_THAT(client.Translate(ToGerman({"two"}), options), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Ask(client, ToGerman({"three"}), options).get(),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client.ListModels(), IsOk());
}

TEST_F(ClientAsyncTest, DestructorEndsCallsFirst) {
  AnswerUntilCancelled();
  std::future<absl::StatusOr<v1::TranslateResponse>> answer;
  {
    Client client = Connect(Options());
    answer = Ask(client, ToGerman({"one"}));
    arrived_.WaitForNotification();
  }
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_THAT(answer.get(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ClientAsyncTest, DocumentLinesAreAnsweredInOrder) {
  server_.on_line = [](auto&, const v1::DocumentLine& line) {
    if (line.text() != "bad") return grpc::Status::OK;
    return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "too long", "TEXT_TOO_LONG", "text");
  };
  Client client = Connect(Options());
  std::vector<std::string> got;
  const auto take = [&got](int64_t index, const absl::StatusOr<v1::TranslateResponse>& result) {
    got.push_back(absl::StrCat(
        index, result.ok() ? result->translations(0).text() : DetailsOf(result.status()).reason));
    return true;
  };
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines({"one", "bad", "", "Grüße"}), take),
              IsOk());
  EXPECT_THAT(got, ElementsAre("0[de] one", "1TEXT_TOO_LONG", "2[de] ", "3[de] Grüße"));

  got.clear();
  v1::SummarizeRequest settings;
  EXPECT_THAT(client.SummarizeDocument(
                  settings, Lines({"one", "two"}),
                  [&got](int64_t, const absl::StatusOr<v1::SummarizeResponse>& result) {
                    got.push_back(result->summaries(0).text());
                    return true;
                  }),
              IsOk());
  EXPECT_THAT(got, ElementsAre("[sum] one", "[sum] two"));
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines({}), take), IsOk());
}

TEST_F(ClientAsyncTest, DocumentLineWithoutAnswerIsAnError) {
  server_.omits_lines = true;
  Client client = Connect(Options());
  absl::Status line;
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines({"one"}),
                                       [&line](int64_t, const auto& result) {
                                         line = result.status();
                                         return true;
                                       }),
              IsOk());
  EXPECT_THAT(line, StatusIs(absl::StatusCode::kInternal, HasSubstr("1 texts with 0 results")));
}

TEST_F(ClientAsyncTest, SlowReaderBlocksTheDocument) {
  Client client = Connect(Options());
  std::atomic<int64_t> written = 0;
  int64_t max_ahead = 0, read = 0;
  constexpr int64_t kLines = 3000;
  const std::string line(400, 'x');
  const auto next = [&]() -> std::optional<std::string> {
    if (written == kLines) return std::nullopt;
    ++written;
    return line;
  };
  const auto take = [&](int64_t index, const absl::StatusOr<v1::TranslateResponse>& result) {
    // Lines are still requested while no result is read, up to a bound.
    while (index == 0 && written < 257) absl::SleepFor(absl::Milliseconds(1));
    max_ahead = std::max(max_ahead, written - index);
    ++read;
    return result.ok();
  };
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), next, take), IsOk());
  EXPECT_EQ(read, kLines);
  EXPECT_LE(max_ahead, 258);  // 256 in flight, one blocked in the writer, one read
}

TEST_F(ClientAsyncTest, ReaderCanEndTheDocument) {
  Client client = Connect(Options());
  int read = 0;
  const auto endless = []() -> std::optional<std::string> { return "line"; };
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), endless,
                                       [&read](int64_t, const auto&) { return ++read < 3; }),
              StatusIs(absl::StatusCode::kCancelled, "cancelled by the reader"));
  EXPECT_EQ(read, 3);
}

TEST_F(ClientAsyncTest, CancellationEndsTheDocument) {
  Client client = Connect(Options());
  CallOptions options;
  options.cancellation.emplace();
  const auto endless = []() -> std::optional<std::string> { return "line"; };
  EXPECT_THAT(client.TranslateDocument(
                  ToGerman({}), endless,
                  [&](int64_t index, const auto&) {
                    if (index == 2) options.cancellation->Cancel();
                    return true;
                  },
                  options),
              StatusIs(absl::StatusCode::kCancelled, "cancelled"));
}

TEST_F(ClientAsyncTest, DocumentWithoutResultsEndsAfterTimeout) {
  server_.on_line = [](grpc::ServerContext& context, const v1::DocumentLine& line) {
    while (line.text() == "stuck" && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  ClientOptions options = Options();
  options.timeout = absl::Milliseconds(300);
  Client client = Connect(options);
  int read = 0;
  const auto count = [&read](int64_t, const auto&) { return ++read > 0; };
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines({"fine", "stuck"}), count),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 300ms")));
  EXPECT_EQ(read, 1);
  // Waiting for the next line does not count as a stall of the server.
  auto lines = Lines({"one", "two"});
  const auto slowly = [&lines]() {
    absl::SleepFor(absl::Milliseconds(400));
    return lines();
  };
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), slowly, count), IsOk());
  // Nor does the time that the caller takes for a result, with other lines in flight.
  const auto think = [](int64_t, const auto&) {
    absl::SleepFor(absl::Milliseconds(400));
    return true;
  };
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines({"one", "two", "three"}), think),
              IsOk());
}

TEST_F(ClientAsyncTest, DocumentThatTheServerDoesNotEndTimesOut) {
  server_.before_end = [](grpc::ServerContext& context) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  };
  ClientOptions options = Options();
  options.timeout = absl::Milliseconds(300);
  Client client = Connect(options);
  for (const std::vector<std::string>& lines : {std::vector<std::string>{}, {"one", "two"}}) {
    size_t read = 0;
    EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines(lines),
                                         [&read](int64_t, const auto&) { return ++read > 0; }),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 300ms")));
    EXPECT_EQ(read, lines.size());
  }
}

TEST_F(ClientAsyncTest, InvalidUtf8LineEndsDocumentWithItsNumber) {
  Client client = Connect(Options());
  std::vector<int64_t> answered;
  EXPECT_THAT(client.TranslateDocument(ToGerman({}), Lines({"fine", "caf\xE9", "more"}),
                                       [&](int64_t line, const auto& result) {
                                         EXPECT_THAT(result, IsOk());
                                         answered.push_back(line);
                                         return true;
                                       }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "line 2: line is not UTF-8: byte 0xe9 at offset 3"));
  EXPECT_THAT(answered, testing::ElementsAre(0)) << "of the line before it";
}

}  // namespace
}  // namespace linnet::client
