// Clients take turns on the text pool: a call of many texts or long targets does not keep the pool
// to itself.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/text/detection_call.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::DetectLanguageRequest;
using linnet::v1::DetectLanguageResponse;
using linnet::v1::ScoreRequest;
using linnet::v1::ScoreResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;

constexpr int kManyTexts = 8192;

void RunJob(TextPool& pool, const std::string& client, std::function<void()> run) {
  TextJob job;
  job.flow.client = client;
  job.run = std::move(run);
  pool.Run(std::move(job));
}

// Runs `call` on a busy pool, and as the turn of another client, which comes after the call's first
// one, `turn`.
void CallAndTurn(TextPool& pool, const std::function<void()>& call, std::function<void()> turn) {
  const auto called = std::make_shared<test::Notification>();
  RunJob(pool, "first", [called] { called->Pass(); });
  call();
  RunJob(pool, "other", std::move(turn));
  called->Open();
}

class TextTurnsTest : public ::testing::Test {
 protected:
  TextTurnsTest() {
    RunJob(fixture_.pool, "rest", [this] { end_.Pass(); });
  }
  ~TextTurnsTest() override { end_.Open(); }

  // Returns the status of a call that another client cancels in its turn.
  template <typename Request, typename Response>
  absl::Status CancelledInATurn(void (TextCalls::*method)(const Request&, Response&,
                                                          const CallContext&, TextCalls::Done),
                                const Request& request) {
    CallContext context{.arrived = absl::Now()};
    Response response;
    absl::Status status;
    test::Notification done;
    CallAndTurn(
        fixture_.pool,
        [&] {
          ((*fixture_.calls).*method)(request, response, context, [&](absl::Status result) {
            status = std::move(result);
            done.Open();
          });
        },
        [&] { context.cancelled->Cancel(); });
    done.Pass();
    return status;
  }

  test::Notification end_;
  // One of the two threads of its pool waits for the end.
  TextFixture fixture_{{}, {}, {.max_segments = kManyTexts}};
};

TEST_F(TextTurnsTest, ManyShortTextsTakeManyTurns) {
  TranslateRequest request = ToGerman({});
  // The turn that reads the last one refuses the call.
  for (int i = 0; i < kManyTexts + 1; ++i) request.add_contents("a");
  EXPECT_THAT(CancelledInATurn(&TextCalls::Translate, request),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(TextTurnsTest, TargetsToScoreCount) {
  ScoreRequest request;
  request.set_source_language_code("en");
  request.set_target_language_code("de");
  std::string twenty, eighty;  // words
  for (int word = 0; word < 100; ++word) absl::StrAppend(&(word < 20 ? twenty : eighty), "window ");
  for (int i = 0; i < 60; ++i) {  // one turn of the sources alone
    request.add_pairs()->set_source_text("a");
    request.mutable_pairs(i)->set_target_text(twenty);
  }
  // The turn that reads it refuses the call.
  request.add_pairs()->set_source_text(eighty);
  request.mutable_pairs(60)->set_target_text("a");
  EXPECT_THAT(CancelledInATurn(&TextCalls::Score, request), StatusIs(absl::StatusCode::kCancelled));
}

// Detects the languages of all texts; returns how many were detected when another client had its
// turn.
int DetectedBeforeATurn(const DetectLanguageRequest& request) {
  DetectLanguageResponse response;
  absl::Status status = absl::UnknownError("not called");
  int detected = -1;
  {
    TextPool pool(1);
    CallAndTurn(
        pool,
        [&] {
          std::make_shared<DetectionCall>(pool, request, response, CallContext{},
                                          [&](absl::Status result) { status = result; })
              ->Start();
        },
        [&] { detected = response.detections_size(); });
  }
  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(response.detections_size(), request.contents_size());
  return detected;
}

TEST(DetectionTurnsTest, ManyShortTextsTakeManyTurns) {
  DetectLanguageRequest request;
  for (int i = 0; i < kManyTexts; ++i) request.add_contents("a");
  EXPECT_LE(DetectedBeforeATurn(request), 2 * kBytesPerTurn / kBytesPerText);
}

TEST(DetectionTurnsTest, TextCountsForWhatIsReadOfIt) {
  DetectLanguageRequest request;
  for (int i = 0; i < 8; ++i) request.add_contents(std::string(100'000, 'a'));
  EXPECT_EQ(DetectedBeforeATurn(request), 1);
}

}  // namespace
}  // namespace linnet::server
