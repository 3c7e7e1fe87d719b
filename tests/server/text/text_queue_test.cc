#include "server/text/text_queue.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/text/text_pool.h"
#include "tests/support/notification.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMegabyte = 1 << 20;

TextJob Job(const std::string& client, int64_t bytes, TextStage stage = TextStage::kPrepare,
            uint64_t call = 1) {
  return {.stage = stage, .flow = {client, Priority::kNormal}, .call = call, .bytes = bytes};
}

std::vector<std::string> Clients(TextQueue& queue, int jobs) {
  std::vector<std::string> clients;
  for (int i = 0; i < jobs; ++i) clients.push_back(queue.Next()->flow.client);
  return clients;
}

TEST(TextQueueTest, ShortTextWaitsForAtMostOneLongJob) {
  TextQueue queue;
  for (int i = 0; i < 100; ++i) queue.Push(Job("long", kMegabyte));
  queue.Next();
  for (int round = 0; round < 20; ++round) {
    queue.Push(Job("short", 50));
    EXPECT_THAT(Clients(queue, 1), ElementsAre("short")) << "round " << round;
    queue.Next();
  }
}

TEST(TextQueueTest, ClientsGetEqualShares) {
  TextQueue queue;
  for (int i = 0; i < 100; ++i) {
    queue.Push(Job("long", 10'000));
    queue.Push(Job("short", 2'436));
  }
  int longs = 0, shorts = 0;
  while (shorts < 40) (queue.Next()->flow.client == "long" ? longs : shorts) += 1;
  EXPECT_NEAR(longs, 10, 1) << "64 bytes more each, for the turn";
}

TEST(TextQueueTest, AnswersGoFirstInFairOrder) {
  TextQueue queue;
  queue.Push(Job("text", 10));
  for (int i = 0; i < 3; ++i) queue.Push(Job("many", 1000, TextStage::kAnswer));
  queue.Next();
  queue.Push(Job("one", 1000, TextStage::kAnswer));
  EXPECT_THAT(Clients(queue, 4), ElementsAre("one", "many", "many", "text"));
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.Next().has_value());
}

TEST(TextQueueTest, EstimatesTimeFromFairShare) {
  TextQueue queue;
  const Flow flow = {"short", Priority::kNormal};
  const MonotonicTime now;
  EXPECT_EQ(queue.EstimateTime(TextStage::kPrepare, flow, 936, 1, now), absl::ZeroDuration())
      << "nothing is known";
  queue.RecordCompletion(TextStage::kPrepare, 99'936, absl::Seconds(1), now);  // 10 us a byte
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.EstimateTime(TextStage::kPrepare, flow, 936, 1, now)),
              0.01, 1e-9);
  for (int i = 0; i < 50; ++i) queue.Push(Job("long", kMegabyte));
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.EstimateTime(TextStage::kPrepare, flow, 936, 1, now)),
              0.02, 1e-9)
      << "as much again of the other";
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.EstimateTime(TextStage::kPrepare, flow, 936, 2, now)),
              0.015, 1e-9);
  const Flow same = {"long", Priority::kNormal};
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.EstimateTime(TextStage::kPrepare, same, 936, 2, now)),
              0.01 + 25 * (kMegabyte + 64) * 1e-5, 1e-6)
      << "behind its own";
  queue.Push(Job("other", 936, TextStage::kAnswer));
  queue.RecordCompletion(TextStage::kAnswer, 936, absl::Milliseconds(3), now);
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.EstimateTime(TextStage::kPrepare, flow, 936, 1, now)),
              0.023, 1e-9)
      << "and the answer";
}

// The estimate for a job of 936 bytes, in seconds.
double Estimate(const TextQueue& queue, MonotonicTime now) {
  const Flow flow = {"any", Priority::kNormal};
  return absl::ToDoubleSeconds(queue.EstimateTime(TextStage::kPrepare, flow, 936, 1, now));
}

TEST(TextQueueTest, OneDelayedJobHardlyRaisesTheEstimate) {
  TextQueue queue;
  const MonotonicTime now;
  for (int i = 0; i < 100; ++i)
    queue.RecordCompletion(TextStage::kPrepare, 936, absl::Milliseconds(10), now);
  EXPECT_NEAR(Estimate(queue, now), 0.01, 1e-9);
  queue.RecordCompletion(TextStage::kPrepare, 936, absl::Hours(1), now);
  EXPECT_LT(Estimate(queue, now), 0.011);
}

TEST(TextQueueTest, SlowerMachineRaisesTheEstimateInTwoMinutes) {
  TextQueue queue;
  MonotonicTime now;
  queue.RecordCompletion(TextStage::kPrepare, kMegabyte, absl::Milliseconds(500), now);
  for (int second = 0; second < 120; ++second) {
    now = After(now, absl::Seconds(1));
    queue.RecordCompletion(TextStage::kPrepare, 936, absl::Milliseconds(10), now);
  }
  EXPECT_NEAR(Estimate(queue, now), 0.01, 0.001);
}

TEST(TextQueueTest, RefusedCallsEndWithTheDecayOfAnEstimate) {
  TextQueue queue;
  MonotonicTime now;
  queue.RecordCompletion(TextStage::kPrepare, 936, absl::Hours(1), now);
  EXPECT_NEAR(Estimate(queue, now), 3600, 1e-6);
  queue.Push(Job("other", 936));
  now = After(now, absl::Minutes(5));
  EXPECT_GT(Estimate(queue, now), 3600) << "it will be known when that job has ended";
  queue.Next();
  EXPECT_LT(Estimate(queue, now), 0.01);
  queue.RecordCompletion(TextStage::kPrepare, 936, absl::Milliseconds(10), now);
  EXPECT_NEAR(Estimate(queue, now), 0.01, 0.001) << "the job after a pause determines it";
}

TEST(TextPoolTest, ExceptionFailsOnlyItsJob) {
  TextPool pool(1);
  std::vector<absl::Status> failures;
  test::Notification done;
  auto run = [&](absl::AnyInvocable<void()> job) {
    pool.Run({.run = std::move(job),
              .fail = [&](absl::Status status) { failures.push_back(std::move(status)); }});
  };
  run([] { throw std::bad_alloc(); });
  run([] { throw std::runtime_error("what it says"); });
  run([] { throw 7; });
  pool.Run({.run = [] { throw std::runtime_error("nobody to tell"); }});
  pool.Run({.run = [] { throw std::runtime_error("first"); },
            .fail = [](const absl::Status&) { throw std::runtime_error("second"); }});
  run([&] { done.Open(); });
  done.Pass();
  ASSERT_EQ(failures.size(), 3);
  EXPECT_EQ(failures[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(failures[1],
              StatusIs(absl::StatusCode::kInternal, ::testing::HasSubstr("what it says")));
  EXPECT_EQ(failures[2].code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace linnet::server
