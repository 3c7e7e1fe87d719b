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

struct Life {
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

std::vector<std::unique_ptr<Life>> RandomLives(std::mt19937& random, int count) {
  auto up_to = [&](int limit) { return static_cast<int>(random() % limit); };
  std::vector<std::unique_ptr<Life>> lives;
  for (int i = 0; i < count; ++i) {
    auto& life = *lives.emplace_back(std::make_unique<Life>());
    for (int n = up_to(20); n > 0; --n) life.words.push_back(100 + up_to(1000));
    if (up_to(15) == 0) life.words.push_back(kNotANumber);
    life.beam_size = 1 + up_to(6);
    if (up_to(4) == 0) life.max_target_tokens = 1 + up_to(10);
    life.arrival_step = up_to(60);
    life.caller = {.client = std::string(1, static_cast<char>('a' + up_to(3))),
                   .priority = static_cast<Priority>(up_to(3)),
                   .call = static_cast<uint64_t>(up_to(30))};
    if (up_to(5) == 0) life.deadline = kStart + absl::Milliseconds(life.arrival_step + up_to(40));
    if (up_to(5) == 0) life.cancel_step = life.arrival_step + up_to(30);
  }
  return lives;
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
                           .max_call_rows_ratio = 0.25 * (1 + random() % 4),
                           .shed = {.interval = absl::Milliseconds(50 + random() % 200),
                                    .max_wait = absl::Milliseconds(20 + random() % 50)}});
  const auto lives = RandomLives(random, 80);

  absl::Time now = kStart;
  StepReport sum;
  for (int step = 0; step < 60 || !batcher.idle(); ++step) {
    ASSERT_LT(step, 5000) << "the batch makes no progress";
    for (const auto& life : lives) {
      if (life->cancel_step == step) life->cancelled->Cancel();
      if (life->arrival_step != step) continue;
      auto sequence = life->Make();
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
    for (const auto& life : lives) {  // within one step
      const bool unwanted = life->cancelled->cancelled() || life->deadline <= now;
      if (life->arrival_step > step || !unwanted) continue;
      EXPECT_TRUE(life->outcome.done());
    }
  }

  EXPECT_EQ(engine.rows_in_use(), 0);
  EXPECT_EQ(sum.finished + sum.cancelled + sum.expired + sum.failed + sum.shed,
            static_cast<int>(lives.size()));
  for (const auto& life : lives) {
    ASSERT_TRUE(life->outcome.done());
    switch (life->outcome.code()) {
      case absl::StatusCode::kOk: {
        test::EchoEngine lonely;
        Batcher alone(lonely, {});
        test::Outcome outcome;
        auto sequence = test::Say(life->words, outcome, life->beam_size);
        sequence->input.options.max_target_tokens = life->max_target_tokens;
        ASSERT_THAT(alone.Add(sequence, now), IsOk());
        while (!alone.idle()) alone.Step([&] { return now; });
        EXPECT_EQ(life->outcome.tokens(), outcome.tokens());
        break;
      }
      case absl::StatusCode::kCancelled:
        EXPECT_TRUE(life->cancelled->cancelled());
        break;
      case absl::StatusCode::kDeadlineExceeded:
        EXPECT_LT(life->deadline, absl::InfiniteFuture());
        break;
      case absl::StatusCode::kResourceExhausted:
        EXPECT_GT(sum.shed, 0);
        break;
      case absl::StatusCode::kInternal:
        EXPECT_TRUE(life->bad());
        break;
      default:
        FAIL() << life->outcome.result->status();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LifecycleTest, ::testing::Range(0, 40));

}  // namespace
}  // namespace linnet::server
