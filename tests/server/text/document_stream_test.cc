// What a document answers to each of its lines.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "tests/server/text/document_fixture.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(DocumentStreamTest, AnswersEveryLineWithItsId) {
  TextFixture fixture;
  Reader reader(fixture);
  TranslateDocumentRequest first = Settings();
  first.MergeFrom(Lines({"The dog runs.", "A bird  sings. She writes."}, 10));
  reader.Send(first);
  reader.Send(Lines({"Last one."}, 20));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  EXPECT_THAT(Ids(reader), ::testing::UnorderedElementsAre(10, 11, 20));
  for (const auto& result : reader.results) {
    ASSERT_TRUE(result.has_response());
    linnet::v1::TranslateResponse alone;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate,
                             ToGerman({result.response().translations(0).text()}), alone),
                IsOk());
    auto same = result.response();
    same.clear_timings();
    alone.clear_timings();
    EXPECT_EQ(same.SerializeAsString(), alone.SerializeAsString());
  }
  EXPECT_EQ(reader.document->lines(), 3);
}

TEST(DocumentStreamTest, KeepsOrderOnRequest) {
  TextFixture fixture;
  Reader reader(fixture);
  reader.Send(Settings(/*keep_order=*/true));
  std::vector<int64_t> sent;
  for (int i = 0; i < 40; ++i) {
    std::string text = "The dog runs";
    for (int more = 0; more < (i * 7) % 9; ++more) text += " through the garden";
    reader.Send(Lines({text}, 100 - i));
    sent.push_back(100 - i);
  }
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  EXPECT_EQ(Ids(reader), sent);
}

TEST(DocumentStreamTest, ReturnsBlankLinesUnchanged) {
  TextFixture fixture;
  Reader reader(fixture);
  reader.Send(Settings(/*keep_order=*/true));
  const std::vector<std::string> lines = {"",       "The dog runs.", " \t",
                                          "\u3000", "\u00A0\u2003",  "\uFEFF"};
  reader.Send(Lines(lines, 1));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  std::vector<std::string> texts;
  for (const auto& result : reader.results) {
    texts.push_back(result.response().translations(0).text());
    EXPECT_EQ(result.response().translations(0).finish_reason(), linnet::v1::FINISH_REASON_STOP);
  }
  EXPECT_THAT(texts, ElementsAreArray(lines));
}

TEST(DocumentStreamTest, FailedLineDoesNotAffectOthers) {
  TextFixture fixture({}, {}, {.max_text_bytes = 40});
  Reader reader(fixture);
  reader.Send(Settings(/*keep_order=*/true));
  reader.Send(Lines({"The dog runs.", std::string(41, 'a'), "A bird sings."}, 1));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  ASSERT_EQ(reader.results.size(), 3);
  EXPECT_TRUE(reader.results[0].has_response());
  EXPECT_TRUE(reader.results[2].has_response());
  ASSERT_TRUE(reader.results[1].has_error());
  EXPECT_EQ(reader.results[1].error().code(), 3);
  EXPECT_THAT(reader.results[1].error().message(), HasSubstr("text: holds 41 bytes"));
  EXPECT_GT(reader.results[1].error().details_size(), 1);
}

TEST(DocumentStreamTest, BadSettingsEndTheDocumentAtOnce) {
  // Each counts as rejected, once, for this reason.
  const auto end = [](TranslateDocumentRequest message, const char* reason = "invalid") {
    TextFixture fixture;
    Reader reader(fixture);
    reader.Send(std::move(message));
    const absl::Status status = reader.ReadToTheEnd();
    EXPECT_TRUE(reader.results.empty());
    EXPECT_THAT(fixture.metrics.Text(),
                HasSubstr(absl::StrCat("linnet_rejected_total{reason=\"", reason, "\"} 1\n")));
    return status;
  };
  EXPECT_THAT(end(Lines({"The dog."}, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings: is required")));
  auto message = Settings();
  message.mutable_settings()->set_target_language_code("fr");
  EXPECT_EQ(end(message, "not_found").code(), absl::StatusCode::kNotFound);
  message = Settings();
  message.mutable_settings()->mutable_options()->set_beam_size(0);
  EXPECT_THAT(end(message), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("settings.options.beam_size: is 0")));
  message = Settings();
  message.mutable_settings()->add_contents("text");
  EXPECT_THAT(end(message),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings.contents")));
  TextFixture fixture;
  Reader empty(fixture);
  empty.document->Close();
  EXPECT_THAT(empty.ReadToTheEnd(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings: is required")));
}

TEST(DocumentStreamTest, CallThatWasRefusedIsNotAdmitted) {
  TextFixture fixture({}, {.max_bytes = 1});
  const auto reason = [&](absl::Status refused) {
    Document document(
        *fixture.calls, absl::InfiniteFuture(), [] {}, {}, std::move(refused));
    EXPECT_FALSE(document.wants_more());
    return ErrorReason(*document.finished());
  };
  EXPECT_EQ(reason(BadField("x", Reason::kMissing, "is missing")), "MISSING");
  EXPECT_EQ(reason(absl::OkStatus()), "CALL_TOO_LARGE");
}

TEST(DocumentStreamTest, LateSettingsEndTheDocumentAfterLinesInFlight) {
  TextFixture fixture;
  Reader reader(fixture);
  auto first = Settings();
  first.MergeFrom(Lines({"The dog runs."}, 1));
  reader.Send(first);
  reader.Send(Settings());
  EXPECT_THAT(reader.ReadToTheEnd(), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("only be set in the first message")));
  EXPECT_THAT(Ids(reader), ElementsAre(1));
}

TEST(DocumentStreamTest, EachLineHasTheDefaultDeadline) {
  TextFixture fixture({}, {}, {.default_deadline = absl::ZeroDuration()});
  Reader reader(fixture);
  reader.Send(Settings());
  reader.Send(Lines({"The dog runs.", "A bird sings."}, 0));
  reader.document->Close();
  EXPECT_THAT(reader.ReadToTheEnd(), IsOk());
  ASSERT_EQ(reader.results.size(), 2);
  for (const auto& result : reader.results)
    EXPECT_EQ(result.error().code(), static_cast<int>(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace linnet::server
