// Randomized test of many sequences in one batcher, by seed: each ends once, with the status that
// its options, deadline and cancellation require.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/schedule/batcher.h"
#include "tests/support/echo_engine.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

constexpr model::TokenId kNotANumber = 66;

struct Case {
  std::vector<model::TokenId> words;
  int beam_size = 1;
  Caller caller;
  int max_target_tokens = 100;
  absl::Time deadline = absl::InfiniteFuture();
  int arrival_step = 0;
  int cancel_step = -1;
  std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
  test::Outcome outcome;

  bool bad() const { return std::count(words.begin(), words.end(), kNotANumber) > 0; }
  std::unique_ptr<Sequence> Make() {
    auto sequence = test::Say(words, outcome, beam_size);
    sequence->input.options.max_target_tokens = max_target_tokens;
    sequence->caller = caller;
    sequence->deadline = deadline;
    sequence->cancelled = cancelled;
    return sequence;
  }
};

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

std::vector<std::unique_ptr<Case>> RandomCases(std::mt19937& random, int count) {
  auto up_to = [&](int limit) { return static_cast<int>(random() % limit); };
  std::vector<std::unique_ptr<Case>> cases;
  for (int i = 0; i < count; ++i) {
    auto& test_case = *cases.emplace_back(std::make_unique<Case>());
    for (int n = up_to(20); n > 0; --n) test_case.words.push_back(100 + up_to(1000));
    if (up_to(15) == 0) test_case.words.push_back(kNotANumber);
    test_case.beam_size = 1 + up_to(6);
    if (up_to(4) == 0) test_case.max_target_tokens = 1 + up_to(10);
    test_case.arrival_step = up_to(60);
    test_case.caller = {.client = std::string(1, static_cast<char>('a' + up_to(3))),
                        .priority = static_cast<Priority>(up_to(3)),
                        .call = static_cast<uint64_t>(up_to(30))};
    if (up_to(5) == 0)
      test_case.deadline = kStart + absl::Milliseconds(test_case.arrival_step + up_to(40));
    if (up_to(5) == 0) test_case.cancel_step = test_case.arrival_step + up_to(30);
  }
  return cases;
}

class LifecycleTest : public ::testing::TestWithParam<int> {};

TEST_P(LifecycleTest, EverySequenceEndsOnceWithBatchInvariance) {
  std::mt19937 random(GetParam());
  test::EchoEngine engine({.rows = 6 + static_cast<int>(random() % 20),
                           .encoder_cache_tokens = 24 + static_cast<int>(random() % 60),
                           .block_tokens = 1 + static_cast<int>(random() % 4),
                           .not_a_number = kNotANumber});
  Batcher batcher(engine, {.max_encode_tokens = 8 + static_cast<int>(random() % 64),
                           .max_sequences = static_cast<int>(random() % 8),
                           .max_rows_ratio = 0.25 * (1 + random() % 4),
                           .shed = {.interval = absl::Milliseconds(50 + random() % 200),
                                    .max_wait = absl::Milliseconds(20 + random() % 50)}});
  const auto cases = RandomCases(random, 80);

  absl::Time now = kStart;
  StepReport sum;
  for (int step = 0; step < 60 || !batcher.idle(); ++step) {
    ASSERT_LT(step, 5000) << "the batch makes no progress";
    for (const auto& test_case : cases) {
      if (test_case->cancel_step == step) test_case->cancelled->Cancel();
      if (test_case->arrival_step != step) continue;
      auto sequence = test_case->Make();
      ASSERT_THAT(batcher.Add(sequence, now), IsOk());
    }
    now = kStart + absl::Milliseconds(step);
    const StepReport report = batcher.Step([&] { return now; });
    EXPECT_LE(report.rows, engine.info().rows);
    EXPECT_LE(engine.memory_in_use(), engine.info().encoder_cache_tokens);
    sum.finished += report.finished;
    sum.cancelled += report.cancelled;
    sum.expired += report.expired;
    sum.failed += report.failed;
    sum.shed += report.shed;
    for (const auto& test_case : cases) {  // within one step
      const bool unwanted = test_case->cancelled->cancelled() || test_case->deadline <= now;
      if (test_case->arrival_step > step || !unwanted) continue;
      EXPECT_TRUE(test_case->outcome.done());
    }
  }

  EXPECT_EQ(engine.rows_in_use(), 0);
  EXPECT_EQ(sum.finished + sum.cancelled + sum.expired + sum.failed + sum.shed,
            static_cast<int>(cases.size()));
  for (const auto& test_case : cases) {
    ASSERT_TRUE(test_case->outcome.done());
    switch (test_case->outcome.code()) {
      case absl::StatusCode::kOk: {
        test::EchoEngine lonely;
        Batcher alone(lonely, {});
        test::Outcome outcome;
        auto sequence = test::Say(test_case->words, outcome, test_case->beam_size);
        sequence->input.options.max_target_tokens = test_case->max_target_tokens;
        ASSERT_THAT(alone.Add(sequence, now), IsOk());
        while (!alone.idle()) alone.Step([&] { return now; });
        EXPECT_EQ(test_case->outcome.tokens(), outcome.tokens());
        break;
      }
      case absl::StatusCode::kCancelled:
        EXPECT_TRUE(test_case->cancelled->cancelled());
        break;
      case absl::StatusCode::kDeadlineExceeded:
        EXPECT_LT(test_case->deadline, absl::InfiniteFuture());
        break;
      case absl::StatusCode::kResourceExhausted:
        EXPECT_GT(sum.shed, 0);
        break;
      case absl::StatusCode::kInternal:
        EXPECT_TRUE(test_case->bad());
        break;
      default:
        FAIL() << test_case->outcome.result->status();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LifecycleTest, ::testing::Range(0, 40));

}  // namespace
}  // namespace linnet::server
