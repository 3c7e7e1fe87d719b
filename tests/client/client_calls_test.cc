// Tests of the library's calls beyond translation: streams, scores, languages, models and the
// details of errors.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/library/client.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class ClientCallsTest : public ::testing::Test {
 protected:
  FakeServer server_;
};

TEST_F(ClientCallsTest, ConcatenatedPartsAreTheResponse) {
  Client client = Connect(QuickOptions(server_.address()));
  std::vector<std::string> texts(2);
  const auto response =
      client.StreamTranslate(ToGerman({"Grüße 🐦", "two"}), [&](const v1::TextPart& part) {
        texts[part.content_index()] += part.text();
        return true;
      });
  ASSERT_THAT(response, IsOk());
  EXPECT_THAT(texts, ElementsAre("[de] Grüße 🐦", "[de] two"));
  ASSERT_EQ(response->translations_size(), 2);
  EXPECT_EQ(response->translations(0).text(), texts[0]);
  EXPECT_EQ(response->model(), "fake");

  v1::SummarizeRequest request;
  request.add_contents("long");
  std::string summary;
  const auto summarised = client.StreamSummarize(request, [&](const v1::TextPart& part) {
    summary += part.text();
    return true;
  });
  ASSERT_THAT(summarised, IsOk());
  EXPECT_EQ(summary, "[sum] long");
  EXPECT_EQ(summarised->summaries(0).text(), summary);
}

TEST_F(ClientCallsTest, ReaderEndsOnlyItsOwnStream) {
  server_.after_part = [](grpc::ServerContext& context, int parts) {
    while (parts == 3 && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  Client client = Connect(QuickOptions(server_.address()));
  std::string got;
  const auto ended = client.StreamTranslate(ToGerman({"text"}), [&](const v1::TextPart& part) {
    got += part.text();
    return got.size() < 2;
  });
  EXPECT_TRUE(absl::IsCancelled(ended.status())) << ended.status();
  EXPECT_EQ(got, "[d");
  EXPECT_THAT(client.Translate(ToGerman({"text"})), IsOk());
}

TEST_F(ClientCallsTest, StreamIsNotRetriedAfterFirstPart) {
  server_.after_part = [](auto&, int parts) {
    return parts < 2 ? grpc::Status::OK
                     : ServerError(grpc::StatusCode::UNAVAILABLE, "going down", "SHUTTING_DOWN");
  };
  Client client = Connect(QuickOptions(server_.address()));
  std::string got;
  const auto failed = client.StreamTranslate(ToGerman({"text"}), [&](const v1::TextPart& part) {
    got += part.text();
    return true;
  });
  EXPECT_TRUE(absl::IsUnavailable(failed.status())) << failed.status();
  EXPECT_EQ(DetailsOf(failed.status()).reason, "SHUTTING_DOWN");
  EXPECT_EQ(got, "[d");
  EXPECT_THAT(server_.translate_requests(), SizeIs(1));
}

TEST_F(ClientCallsTest, StreamIsRetriedBeforeFirstPart) {
  int calls = 0;
  server_.on_translate = [&calls](auto&, const v1::TranslateRequest& request,
                                  v1::TranslateResponse& response) {
    if (++calls == 1)
      return ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "QUEUE_FULL");
    response.add_translations()->set_text(request.contents(0));
    response.mutable_translations(0)->add_segments();
    return grpc::Status::OK;
  };
  Client client = Connect(QuickOptions(server_.address()));
  std::string got;
  ASSERT_THAT(client.StreamTranslate(ToGerman({"text"}),
                                     [&](const v1::TextPart& part) {
                                       got += part.text();
                                       return true;
                                     }),
              IsOk());
  EXPECT_EQ(got, "text");
}

TEST_F(ClientCallsTest, ScoresKeepTheOrderOfPairs) {
  v1::ScoreRequest request;
  for (const char* target : {"Ein Hund.", "Ja."}) {
    request.add_pairs()->set_source_text("A dog.");
    request.mutable_pairs(request.pairs_size() - 1)->set_target_text(target);
  }
  Client client = Connect(QuickOptions(server_.address()));
  const auto response = client.Score(request);
  ASSERT_THAT(response, IsOk());
  ASSERT_EQ(response->scores_size(), 2);
  EXPECT_EQ(response->scores(0).score(), -9);
  EXPECT_EQ(response->scores(1).score(), -3);
}

TEST_F(ClientCallsTest, FewerAnswersThanTextsAreAnError) {
  server_.on_score = [](auto&, const auto&, auto&) { return grpc::Status::OK; };
  server_.on_detect = [](auto&, const auto&, auto&) { return grpc::Status::OK; };
  Client client = Connect(QuickOptions(server_.address()));
  v1::ScoreRequest score;
  score.add_pairs();
  EXPECT_THAT(client.Score(score).status().message(), HasSubstr("1 texts with 0 results"));
  v1::DetectLanguageRequest detect;
  detect.add_contents("Ein Hund.");
  EXPECT_THAT(client.DetectLanguage(detect).status().message(), HasSubstr("1 texts with 0"));
}

TEST_F(ClientCallsTest, ReturnsLanguagesAndModels) {
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  Client client = Connect(QuickOptions(server_.address()));
  v1::DetectLanguageRequest detect;
  detect.add_contents("Ein Hund.");
  const auto detected = client.DetectLanguage(detect);
  ASSERT_THAT(detected, IsOk());
  EXPECT_EQ(detected->detections(0).languages(0).language_code(), "de");
  v1::GetModelRequest get;
  get.set_name("en-de");
  const auto model = client.GetModel(get);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->model().version(), "7");
  get.set_name("babel");
  EXPECT_EQ(DetailsOf(client.GetModel(get).status()).reason, "MODEL_NOT_FOUND");
}

TEST_F(ClientCallsTest, ChecksStringsInNestedMessages) {
  Client client = Connect(QuickOptions(server_.address()));
  v1::ScoreRequest score;
  score.add_pairs()->set_source_text("fine");
  score.add_pairs()->set_target_text("caf\xE9");
  EXPECT_THAT(client.Score(score).status().message(),
              HasSubstr("pairs[1].target_text is not UTF-8"));
  v1::TranslateRequest request = ToGerman({"fine"});
  (*request.mutable_labels())["team"] = "\xFF";
  EXPECT_THAT(client.Translate(request).status().message(), HasSubstr("labels[0].value is not"));
  EXPECT_THAT(server_.translate_requests(), IsEmpty());
}

TEST_F(ClientCallsTest, SendsRequestIdIfValid) {
  Client client = Connect(QuickOptions(server_.address()));
  CallOptions call;
  call.request_id = "order-17";
  ASSERT_THAT(client.Translate(ToGerman({"text"}), call), IsOk());
  ASSERT_THAT(client.Translate(ToGerman({"text"})), IsOk());
  EXPECT_THAT(server_.request_ids(), ElementsAre("order-17", SizeIs(32)));
  for (const std::string& bad :
       {std::string("two words"), std::string("line\n"), std::string("é"), std::string(129, 'x')}) {
    call.request_id = bad;
    EXPECT_TRUE(absl::IsInvalidArgument(client.Translate(ToGerman({"text"}), call).status()))
        << bad;
  }
  EXPECT_THAT(server_.translate_requests(), SizeIs(2));
}

TEST_F(ClientCallsTest, DecodesErrorDetails) {
  server_.on_translate = [](auto&, const auto&, auto&) {
    return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "text has 900 tokens", "TEXT_TOO_LONG",
                       "contents[1]");
  };
  Client client = Connect(QuickOptions(server_.address()));
  absl::Status status = client.Translate(ToGerman({"a", "b"})).status();
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                    absl::Cord(retry.SerializeAsString()));
  google::rpc::RequestInfo info;
  info.set_request_id("order-17");
  status.SetPayload("type.googleapis.com/google.rpc.RequestInfo",
                    absl::Cord(info.SerializeAsString()));
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "TEXT_TOO_LONG");
  EXPECT_THAT(details.metadata, ElementsAre(Pair("limit", "9")));
  EXPECT_EQ(details.field, "contents[1]");
  EXPECT_EQ(details.retry_delay, absl::Milliseconds(1500));
  EXPECT_EQ(details.request_id, "order-17");
  EXPECT_THAT(ErrorText(status), HasSubstr("\n  request order-17"));

  const ErrorDetails none = DetailsOf(absl::UnavailableError("cannot reach"));
  EXPECT_THAT(none.reason, IsEmpty());
  EXPECT_FALSE(none.retry_delay.has_value());
}

TEST_F(ClientCallsTest, RequestTooLargeHasReasonAndNoRetry) {
  Client client = Connect(QuickOptions(server_.address()));
  const absl::Status status =
      client.Translate(ToGerman({std::string((4 << 20) + 1, 'x')})).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4194304")));
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "MESSAGE_TOO_LARGE");
  EXPECT_EQ(details.metadata.at("maxBytes"), "4194304");
  EXPECT_FALSE(details.retry_delay.has_value());
}

TEST_F(ClientCallsTest, RequestTooLargeIsNoReplyOfTheSameLimit) {
  ClientOptions options = QuickOptions(server_.address());
  options.max_reply_bytes = 4 << 20;
  Client client = Connect(options);
  const v1::TranslateRequest request = ToGerman({std::string((4 << 20) + 1, 'x')});
  EXPECT_EQ(DetailsOf(client.Translate(request).status()).reason, "MESSAGE_TOO_LARGE");
  const auto ignore = [](const v1::TextPart&) { return true; };
  EXPECT_EQ(DetailsOf(client.StreamTranslate(request, ignore).status()).reason,
            "MESSAGE_TOO_LARGE");
}

}  // namespace
}  // namespace linnet::client
