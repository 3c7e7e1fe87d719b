// Calls from start to end: failures, cancellation, deadlines, drain.
#include "server/text/text_call.h"
#include "server/base/monotonic.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextCallTest, FailedSegmentFailsTheCallOnce) {
  // Every sequence with this token fails; the tokenizer defines it.
  auto tokens = [] {
    TextFixture fixture;
    return *fixture.catalog->models()[0]->source_tokenizer->Encode("window");
  }();
  TextFixture fixture({.not_a_number = tokens.back()});
  TranslateResponse response;
  const absl::Status status = fixture.Call(
      &TextCalls::Translate,
      ToGerman({"A bird sings.", "Please open the window", "She writes a letter."}), response);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorReason(status), "INTERNAL");
  EXPECT_EQ(response.translations_size(), 0) << "whole or not at all";
}

TEST(TextCallTest, CancelEndsTheCallWithinAStep) {
  test::Notification in_step, go_on;
  std::atomic<bool> armed = false;  // the golden example makes steps during construction
  std::atomic<int> steps = 0;
  TextFixture fixture({.on_step = [&] {
    if (!armed) return;
    ++steps;
    in_step.Open();
    go_on.Pass();
  }});
  armed = true;
  CallContext context{.arrived = absl::Now()};
  TranslateResponse response;
  absl::Status status;
  test::Notification done;
  const TranslateRequest request = ToGerman({"The dog runs through the garden.", "A bird sings."});
  fixture.calls->Translate(request, response, context, [&](absl::Status result) {
    status = std::move(result);
    done.Open();
  });
  in_step.Pass();
  context.cancelled->Cancel();
  go_on.Open();
  done.Pass();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(steps, 1) << "only the step in flight was made";
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

TEST(TextCallTest, CancelledCallDecodesNothing) {
  TextFixture fixture;
  CallContext context{.arrived = absl::Now()};
  context.cancelled->Cancel();
  TranslateResponse response;
  EXPECT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({"The dog runs."}), response, context),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(TextCallTest, PastDeadlineIsExceeded) {
  TextFixture fixture;
  TranslateResponse response;
  EXPECT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({"The dog runs."}), response,
                           {.arrived = absl::Now(), .deadline = absl::Now() - absl::Seconds(1)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(TextCallTest, CallWithoutDeadlineGetsTheDefault) {
  TextFixture fixture({}, {},
                      {.default_deadline = absl::Minutes(5), .max_deadline = absl::Hours(1)});
  TranslateResponse response;
  const auto translate = [&](absl::Duration ago, absl::Time deadline) {
    return fixture.Call(&TextCalls::Translate, ToGerman({"The dog runs."}), response,
                        {.arrived = absl::Now() - ago, .deadline = deadline});
  };
  EXPECT_THAT(translate(absl::Minutes(1), absl::InfiniteFuture()), IsOk());
  EXPECT_THAT(translate(absl::Minutes(6), absl::InfiniteFuture()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("the default")));
  EXPECT_THAT(translate(absl::Minutes(6), absl::Now() + absl::Minutes(1)), IsOk())
      << "its own goes before the default";
  EXPECT_THAT(translate(absl::Hours(2), absl::Now() + absl::Hours(9)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("max-deadline")));
  EXPECT_THAT(translate(absl::Hours(2), absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, Not(HasSubstr("-deadline)"))));
}

TEST(TextCallTest, CallsThatCannotBePreparedInTimeAreRefused) {
  // Before the fixture, whose threads may look at them until it is destroyed.
  test::Notification inside[2], go_on, done;
  TextFixture fixture;
  TranslateResponse response;
  const TranslateRequest request = ToGerman({"The dog runs."});
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk())
      << "from now on a speed is known";
  // While both threads are busy, the client has more to prepare than can be done in years.
  for (test::Notification& one : inside) {
    fixture.pool.Run({.run = [&] {
      one.Open();
      go_on.Pass();
    }});
  }
  for (test::Notification& one : inside) one.Pass();
  fixture.pool.Run({.bytes = int64_t{1} << 60, .run = [] {}});
  absl::Status status;
  fixture.calls->Translate(request, response,
                           {.arrived = absl::Now(), .deadline = absl::Now() + absl::Minutes(5)},
                           [&](absl::Status result) {
                             status = std::move(result);
                             done.Open();
                           });
  go_on.Open();
  done.Pass();
  EXPECT_EQ(ErrorReason(status), "DEADLINE_TOO_CLOSE");
  EXPECT_THAT(std::string(status.message()), HasSubstr("tokenising"));
}

TEST(TextCallTest, TimeForTheAnswerBelongsToTheEstimate) {
  TextFixture fixture({}, {},
                      {.default_deadline = absl::Seconds(9), .max_deadline = absl::Seconds(11)});
  TranslateResponse response;
  const auto translate = [&](absl::Duration left) {
    return fixture.Call(&TextCalls::Translate,
                        ToGerman({"The dog runs." + std::string(100'000, ' ')}), response,
                        {.arrived = absl::Now(), .deadline = absl::Now() + left});
  };
  // A job of answers that takes 0.3 ms a byte or more: this one takes half a minute.
  fixture.pool.Run({.stage = TextStage::kAnswer, .bytes = 1, .run = [] {
                      absl::SleepFor(absl::Milliseconds(20));
                    }});
  while (fixture.pool.EstimateTime(TextStage::kAnswer, {}, 1) == absl::ZeroDuration())
    absl::SleepFor(absl::Milliseconds(1));
  const absl::Status own = translate(absl::Seconds(10));
  EXPECT_EQ(ErrorReason(own), "DEADLINE_TOO_CLOSE");
  EXPECT_THAT(std::string(own.message()), Not(HasSubstr("-deadline")));
  // A later deadline would not help: the server sets it.
  const absl::Status max = translate(absl::Hours(1));
  EXPECT_EQ(ErrorReason(max), "DEADLINE_TOO_CLOSE");
  EXPECT_THAT(std::string(max.message()), HasSubstr("allows 11s at most: max-deadline"));
  const absl::Status none = translate(absl::InfiniteDuration());
  EXPECT_EQ(ErrorReason(none), "DEADLINE_TOO_CLOSE");
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("the default of 9s applies: set one of at most 11s"));
}

TEST(TextCallTest, DefaultBeamBeyondTheRowsOfAStepIsNamedInTheError) {
  TextFixture fixture([](const model::Bundle&) {
    test::EchoEngine::Options options = {.limits = kTinyLimits};
    options.limits.max_beam_size = 1;
    return std::make_unique<test::EchoEngine>(options);
  });
  TranslateResponse response;
  TranslateRequest request = ToGerman({"The dog runs."});
  EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "options.beam_size: is 2, it must be between 1 and 1: it is the model's "
                       "default and beyond max-batch-rows, set a smaller one"));
  request.mutable_options()->set_beam_size(1);
  EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
}

TEST(TextCallTest, StepsOfOneRowCopyText) {
  TextFixture fixture([](const model::Bundle&) {
    test::EchoEngine::Options options = {.limits = kTinyLimits};
    options.limits.max_beam_size = 1;
    return std::make_unique<test::EchoEngine>(options);
  });
  auto manifest = test::TinyManifest("en-it", linnet::v1::TASK_TRANSLATE, "en", "it");
  manifest.set_text_grammar(true);
  manifest.add_placeholders("<ph0>");
  test::WriteBundle(fixture.folder.path() / "en-it", manifest);
  ASSERT_TRUE(fixture.catalog->Reload().ok());
  TranslateRequest request = ToGerman({"I saw 東京 today."});
  request.set_target_language_code("it");
  request.mutable_options()->set_beam_size(1);
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  EXPECT_EQ(response.translations(0).text(), "I saw 東京 today.");
}

TEST(TextCallTest, DetectLanguageHasTheSameDeadlines) {
  TextFixture fixture({}, {},
                      {.default_deadline = absl::Minutes(5), .max_deadline = absl::Hours(1)});
  linnet::v1::DetectLanguageRequest request;
  linnet::v1::DetectLanguageResponse response;
  request.add_contents("The dog runs through the garden.");
  EXPECT_THAT(fixture.Call(&TextCalls::DetectLanguage, request, response,
                           {.arrived = absl::Now() - absl::Minutes(6)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("the default")));
}

TEST(TextCallTest, RejectsCallThatNeverFits) {
  TextFixture fixture({}, {.max_tokens = 50});
  TranslateResponse response;
  EXPECT_THAT(fixture.Call(&TextCalls::Translate,
                           ToGerman({"The dog runs.", "A bird sings.", "She writes."}), response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 37")));
}

TEST(TextCallTest, RejectsCallsWhileFull) {
  TextFixture fixture({}, {.max_tokens = 254});
  TranslateRequest request = ToGerman({"The dog runs."});
  request.mutable_options()->set_beam_size(1);
  request.mutable_options()->set_min_target_tokens(79);  // it is expected to cost that
  TranslateResponse response;
  {
    auto other = fixture.admission.Enter({.client = "other"}, 1);
    ASSERT_THAT(other->Charge({.model = "en-de", .size = {.tokens = 190}}, absl::Now()), IsOk());
    test::Notification done;
    absl::Status status;
    fixture.calls->Translate(request, response, {.arrived = absl::Now()}, [&](absl::Status result) {
      status = std::move(result);
      done.Open();
    });
    done.Pass();
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("190 tokens of work")));
    // The estimate from the engine's warm-up is short, so this is the min delay.
    EXPECT_GE(RetryDelay(status), absl::Milliseconds(100));
    EXPECT_LE(RetryDelay(status), absl::Milliseconds(1250));
  }
  EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
}

TEST(TextCallTest, DrainFinishesRunningAndRefusesNewCalls) {
  TextFixture fixture;
  std::vector<TranslateResponse> responses(10);
  std::vector<absl::Status> statuses(10, absl::UnknownError("no answer"));
  const TranslateRequest request = ToGerman({"The dog runs through the garden.", "A bird sings."});
  for (int i = 0; i < 10; ++i) {
    fixture.calls->Translate(request, responses[i], {.arrived = absl::Now()},
                             [&, i](absl::Status status) { statuses[i] = std::move(status); });
  }
  fixture.calls->Drain(MonotonicTime::max());
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
  TranslateResponse late;
  const absl::Status refused = fixture.Call(&TextCalls::Translate, request, late);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), "SHUTTING_DOWN");
}

TEST(TextCallTest, DrainAtDeadlineEndsEveryCallOnce) {
  TextFixture fixture;
  constexpr int kCalls = 50;
  std::vector<TranslateResponse> responses(kCalls);
  std::vector<std::atomic<int>> answers(kCalls);
  std::atomic<int> others = 0;
  const TranslateRequest request =
      ToGerman({"The dog runs through the garden.", "A bird sings.", "She writes."});
  for (int i = 0; i < kCalls; ++i) {
    fixture.calls->Translate(request, responses[i], {.arrived = absl::Now()},
                             [&, i](const absl::Status& status) {
                               ++answers[i];
                               if (!status.ok() && status.code() != absl::StatusCode::kUnavailable)
                                 ++others;
                             });
  }
  fixture.calls->Drain(MonotonicNow());
  for (const auto& count : answers) EXPECT_EQ(count, 1);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

TEST(TextCallTest, ConcurrentCallsGetTheirOwnAnswers) {
  TextFixture fixture;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const std::string text = absl::StrCat("Thread ", t, " says\n ", i, " times\n\nthe same.");
        TranslateResponse response;
        test::Notification done;
        auto context = CallContext{.arrived = absl::Now()};
        if (i % 5 == 4) context.cancelled->Cancel();
        const TranslateRequest request = ToGerman({text});
        absl::Status status;
        fixture.calls->Translate(request, response, context, [&](absl::Status result) {
          status = std::move(result);
          done.Open();
        });
        done.Pass();
        if (i % 5 == 4) {
          EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
        } else {
          EXPECT_EQ(response.translations(0).text(), text);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fixture.admission.tokens(), 0);
  EXPECT_EQ(fixture.admission.bytes(), 0);
}

}  // namespace
}  // namespace linnet::server
