// Tests of schedulers whose engines are loaded on demand.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/schedule/engine_memory.h"
#include "server/schedule/scheduler.h"
#include "tests/support/echo_engine.h"
#include "tests/support/notification.h"
#include "tests/support/status_matchers.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Notification;
using test::Outcome;
using test::Say;
using test::Waited;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// More than the process grows while a fake engine is built.
constexpr int64_t kEngineBytes = int64_t{1} << 30;

// An engine that is counted while it exists.
class CountedEngine : public EchoEngine {
 public:
  CountedEngine(const Options& options, std::atomic<int>& alive)
      : EchoEngine(options), alive_(alive) {
    ++alive_;
  }
  ~CountedEngine() override { --alive_; }

 private:
  std::atomic<int>& alive_;
};

// A scheduler that loads a fake engine on demand, and counts the loads.
struct DemandedModel {
  explicit DemandedModel(EngineMemory& memory, EchoEngine::Options options = {},
                         bool pinned = false) {
    model::EngineInfo info = EchoEngine(options).info();
    info.encoder_cost.reset();  // unknown before an engine has measured it
    auto started = Scheduler::Start(
        [this, options]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          ++builds;
          if (on_build) on_build();
          if (fails) return absl::InternalError("the file is damaged");
          if (device_lost) return model::DeviceLost(absl::InternalError("the GPU is gone"));
          return std::make_unique<CountedEngine>(options, alive);
        },
        {}, nullptr, {}, "model",
        {.memory = &memory,
         .pinned = pinned,
         .info = info,
         .bytes = kEngineBytes,
         .warm_up = [this](int rows) { return warm_up ? warm_up(rows) : Sequences(); }});
    EXPECT_THAT(started, IsOk());
    scheduler = *std::move(started);
  }

  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  absl::Status Submit(std::unique_ptr<Sequence> sequence) {
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(std::move(sequence));
    return scheduler->Submit(one);
  }
  absl::Status Decode(model::TokenId token = 5) {
    Waited waited;
    if (absl::Status status = Submit(Say({token}, waited)); !status.ok()) return status;
    if (absl::Status status = waited.status(); !status.ok()) return status;
    EXPECT_THAT(waited.outcome.tokens(), ElementsAre(token, 2));
    return absl::OkStatus();
  }
  // An answer arrives before its engine counts as idle.
  void UntilIdle() const {
    while (!scheduler->idle_since().has_value()) absl::SleepFor(absl::Milliseconds(1));
  }
  LoadState state() const { return scheduler->load_stats().state; }

  std::atomic<int> builds = 0;
  std::atomic<int> alive = 0;
  std::atomic<bool> fails = false;
  std::atomic<bool> device_lost = false;
  std::function<void()> on_build = nullptr;
  std::function<Sequences(int rows)> warm_up = nullptr;
  std::unique_ptr<Scheduler> scheduler;  // first to go: its thread uses the others
};

TEST(LoadOnDemandTest, LoadsTheEngineWithTheFirstSequence) {
  EngineMemory memory(0);
  DemandedModel model(memory);
  EXPECT_EQ(model.state(), LoadState::kAvailable);
  EXPECT_EQ(model.scheduler->engine_info().rows, EchoEngine().info().rows);
  EXPECT_EQ(model.builds, 0);
  EXPECT_THAT(model.Decode(), IsOk());
  EXPECT_THAT(model.Decode(6), IsOk());
  EXPECT_EQ(model.builds, 1);
  EXPECT_EQ(model.state(), LoadState::kLoaded);
  EXPECT_GE(memory.bytes(), kEngineBytes);
  model.scheduler = nullptr;
  EXPECT_EQ(memory.bytes(), 0);
}

TEST(LoadOnDemandTest, ChecksSequencesBeforeTheEngineIsLoaded) {
  EngineMemory memory(0);
  DemandedModel model(memory);
  Waited waited;
  EXPECT_THAT(model.Submit(Say({1 << 29}, waited)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vocabulary")));
  EXPECT_EQ(model.builds, 0);
}

TEST(LoadOnDemandTest, AllSequencesWaitForTheSameLoad) {
  EngineMemory memory(0);
  DemandedModel model(memory);
  Notification building, go_on;
  model.on_build = [&] {
    building.Open();
    go_on.Pass();
  };
  Waited first, second;
  ASSERT_THAT(model.Submit(Say({5}, first)), IsOk());
  building.Pass();
  EXPECT_EQ(model.state(), LoadState::kLoading);
  ASSERT_THAT(model.Submit(Say({6}, second)), IsOk());
  go_on.Open();
  EXPECT_THAT(first.status(), IsOk());
  EXPECT_THAT(second.status(), IsOk());
  EXPECT_EQ(model.builds, 1);
}

TEST(LoadOnDemandTest, FirstLoadIsEstimatedByTheLoadsOfOtherModels) {
  EngineMemory memory(0);
  DemandedModel known(memory), unknown(memory);
  EXPECT_EQ(unknown.scheduler->load_stats().load_time, absl::ZeroDuration());
  known.on_build = [] { absl::SleepFor(absl::Milliseconds(20)); };
  EXPECT_THAT(known.Decode(), IsOk());
  const absl::Duration time = known.scheduler->load_stats().load_time;
  EXPECT_GE(time, absl::Milliseconds(20));
  const absl::Duration estimate = unknown.scheduler->load_stats().load_time;
  EXPECT_DOUBLE_EQ(absl::FDivDuration(estimate, time), 1) << "it has as many bytes";
  EXPECT_DOUBLE_EQ(absl::FDivDuration(memory.EstimateLoad(kEngineBytes / 2), time), 0.5);
  EXPECT_DOUBLE_EQ(absl::FDivDuration(memory.EstimateLoad(kEngineBytes * 100), time), 1);
  EXPECT_THAT(unknown.Decode(), IsOk());
  EXPECT_NE(unknown.scheduler->load_stats().load_time, estimate) << "its own";
}

TEST(LoadOnDemandTest, UnloadsTheEngineThatWasUsedLeastRecently) {
  EngineMemory memory(5 * kEngineBytes / 2);
  DemandedModel a(memory), b(memory), c(memory);
  EXPECT_THAT(a.Decode(), IsOk());
  EXPECT_THAT(b.Decode(), IsOk());
  b.UntilIdle();
  EXPECT_THAT(a.Decode(), IsOk());
  a.UntilIdle();
  EXPECT_THAT(c.Decode(), IsOk());
  c.UntilIdle();
  EXPECT_EQ(b.alive, 0);
  EXPECT_EQ(b.scheduler->load_stats().unloads, 1);
  EXPECT_EQ(a.alive, 1);
  EXPECT_THAT(b.Decode(), IsOk());
  EXPECT_EQ(a.alive, 0);
  EXPECT_EQ(c.alive, 1);
  EXPECT_EQ(b.builds, 2);
}

TEST(LoadOnDemandTest, NeverUnloadsAnEngineInUse) {
  EngineMemory memory(kEngineBytes);
  Notification in_step, go_on;
  DemandedModel busy(memory, {.on_step = [&] {
                       in_step.Open();
                       go_on.Pass();
                     }});
  DemandedModel other(memory);
  Waited running, expired, cancelled, waiting;
  ASSERT_THAT(busy.Submit(Say({5}, running)), IsOk());
  in_step.Pass();
  auto sequence = Say({6}, expired);
  sequence->deadline = absl::Now() + absl::Milliseconds(1);
  ASSERT_THAT(other.Submit(std::move(sequence)), IsOk());
  sequence = Say({7}, cancelled);
  sequence->cancelled = std::make_shared<Cancellation>();
  sequence->cancelled->Cancel();
  ASSERT_THAT(other.Submit(std::move(sequence)), IsOk());
  ASSERT_THAT(other.Submit(Say({8}, waiting)), IsOk());
  EXPECT_EQ(expired.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(other.builds, 0);
  EXPECT_EQ(busy.alive, 1);
  go_on.Open();
  EXPECT_THAT(running.status(), IsOk());
  EXPECT_THAT(waiting.status(), IsOk()) << "once the other engine is idle";
  EXPECT_EQ(busy.alive, 0);
}

TEST(LoadOnDemandTest, APinnedEngineIsLoadedAtStartAndStays) {
  EngineMemory memory(3 * kEngineBytes / 2);
  DemandedModel pinned(memory, {}, /*pinned=*/true);
  EXPECT_EQ(pinned.builds, 1);
  EXPECT_EQ(pinned.state(), LoadState::kLoaded);
  DemandedModel other(memory);
  EXPECT_EQ(other.Decode().code(), absl::StatusCode::kUnavailable) << "it does not wait for ever";
  EXPECT_THAT(other.scheduler->health().why.message(), HasSubstr("pin fewer models"));
  EXPECT_EQ(other.builds, 0);
  EXPECT_EQ(pinned.alive, 1);
}

TEST(LoadOnDemandTest, BatcherTakesTheEncoderCostThatTheEngineMeasured) {
  EngineMemory memory(0);
  for (const bool measured : {false, true}) {
    std::atomic<int> encoder_calls = 0;
    EchoEngine::Options options;
    options.on_add = [&] { ++encoder_calls; };
    if (measured) options.encoder_cost = model::EncoderCost{.call_steps = 4, .call_tokens = 900};
    DemandedModel model(memory, options);
    ASSERT_THAT(model.Decode(), IsOk());
    model.UntilIdle();
    // With the constants these two lengths are encoded apart.
    std::vector<std::unique_ptr<Sequence>> both;
    Waited shorter, longer;
    both.push_back(Say(std::vector<model::TokenId>(5, 5), shorter));
    both.push_back(Say(std::vector<model::TokenId>(60, 5), longer));
    ASSERT_THAT(model.scheduler->Submit(both), IsOk());
    EXPECT_THAT(shorter.status(), IsOk());
    EXPECT_THAT(longer.status(), IsOk());
    EXPECT_EQ(encoder_calls, measured ? 2 : 3);
  }
}

TEST(LoadOnDemandTest, AFailedLoadIsRememberedForAWhile) {
  EngineMemory memory(0);
  DemandedModel model(memory);
  model.fails = true;
  EXPECT_EQ(model.Decode().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(model.scheduler->health().state, EngineHealth::State::kDown);
  EXPECT_THAT(model.scheduler->health().why.message(), HasSubstr("damaged"));
  model.fails = false;
  const absl::Status refused = model.Decode();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_LE(RetryDelay(refused), absl::Seconds(2));
  EXPECT_EQ(model.builds, 1) << "it was not tried again";
  EXPECT_EQ(memory.bytes(), 0);
  EXPECT_EQ(model.scheduler->load_stats().failures, 1);
  EXPECT_FALSE(model.scheduler->failure().has_value()) << "the process goes on";
}

TEST(LoadOnDemandTest, ALoadThatFindsTheDeviceLostFailsForGood) {
  EngineMemory memory(0);
  DemandedModel model(memory);
  model.device_lost = true;
  EXPECT_EQ(model.Decode().code(), absl::StatusCode::kUnavailable);
  while (model.scheduler->health().state != EngineHealth::State::kFailed)
    absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(model.scheduler->failure().has_value()) << "the process ends";
  EXPECT_THAT(model.scheduler->failure()->why.message(), HasSubstr("the GPU is gone"));
}

TEST(LoadOnDemandTest, ABundleBeyondTheLimitIsNotLoaded) {
  EngineMemory memory(kEngineBytes / 2);
  DemandedModel model(memory);
  EXPECT_EQ(model.Decode().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(model.scheduler->health().why.message(), HasSubstr("max-model-bytes is 536870912"));
  EXPECT_EQ(model.builds, 0);
}

TEST(LoadOnDemandTest, DrainEndsSequencesThatWaitForMemory) {
  EngineMemory memory(kEngineBytes);
  Notification in_step, go_on;
  DemandedModel busy(memory, {.on_step = [&] {
                       in_step.Open();
                       go_on.Pass();
                     }});
  DemandedModel other(memory);
  Waited running, waited;
  ASSERT_THAT(busy.Submit(Say({5}, running)), IsOk());
  in_step.Pass();
  ASSERT_THAT(other.Submit(Say({6}, waited)), IsOk());
  other.scheduler->Drain(MonotonicNow());
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kUnavailable);
  go_on.Open();
  EXPECT_THAT(running.status(), IsOk());
}

TEST(LoadOnDemandTest, DrainEndsSequencesDuringALoadAtItsDeadline) {
  EngineMemory memory(kEngineBytes);
  DemandedModel model(memory);
  Notification loading;
  model.on_build = [&] { loading.Pass(); };
  Waited waited;
  ASSERT_THAT(model.Submit(Say({6}, waited)), IsOk());
  while (model.builds == 0) absl::SleepFor(absl::Milliseconds(1));
  model.scheduler->Drain(MonotonicNow());
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kUnavailable);
  loading.Open();
}

TEST(LoadOnDemandTest, CancelledSequenceEndsDuringTheLoad) {
  EngineMemory memory(kEngineBytes);
  DemandedModel model(memory);
  Notification loading;
  model.on_build = [&] { loading.Pass(); };
  Waited waited;
  auto sequence = Say({6}, waited);
  const auto cancelled = sequence->cancelled = std::make_shared<Cancellation>();
  ASSERT_THAT(model.Submit(std::move(sequence)), IsOk());
  while (model.builds == 0) absl::SleepFor(absl::Milliseconds(1));
  cancelled->Cancel();
  model.scheduler->Maintain(MonotonicNow());
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kCancelled);
  loading.Open();
}

// One sequence without a sink.
DemandedModel::Sequences WarmUpWith(model::TokenId token) {
  static Outcome ignored;
  DemandedModel::Sequences one;
  one.push_back(Say({token}, ignored));
  one.front()->sink = nullptr;
  return one;
}

TEST(LoadOnDemandTest, WarmsUpAfterTheFirstLoadOnly) {
  EngineMemory memory(3 * kEngineBytes / 2);
  DemandedModel model(memory), other(memory);
  std::vector<int> rows;
  std::vector<LoadState> states;
  model.warm_up = [&](int wanted) {
    rows.push_back(wanted);
    states.push_back(model.state());
    return WarmUpWith(5);
  };
  EXPECT_THAT(model.Decode(), IsOk());
  EXPECT_THAT(rows, ElementsAre(1, EchoEngine().info().rows));
  EXPECT_THAT(states, ElementsAre(LoadState::kLoading, LoadState::kLoading));
  EXPECT_THAT(other.Decode(), IsOk());
  EXPECT_THAT(model.Decode(), IsOk());
  EXPECT_EQ(model.builds, 2);
  EXPECT_EQ(rows.size(), 2);
}

TEST(LoadOnDemandTest, SequencesThatWaitForTheWarmUpMayBeCancelled) {
  EngineMemory memory(0);
  Notification in_step, go_on;
  DemandedModel model(memory, {.on_step = [&] {
                        in_step.Open();
                        go_on.Pass();
                      }});
  model.warm_up = [](int) { return WarmUpWith(5); };
  Waited waited;
  auto sequence = Say({6}, waited);
  const auto cancelled = sequence->cancelled = std::make_shared<Cancellation>();
  ASSERT_THAT(model.Submit(std::move(sequence)), IsOk());
  in_step.Pass();
  cancelled->Cancel();
  model.scheduler->Maintain(MonotonicNow());
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kCancelled);
  go_on.Open();
}

TEST(LoadOnDemandTest, EngineThatFailsInItsWarmUpIsRebuilt) {
  EngineMemory memory(0);
  std::atomic<bool> throws = true;
  DemandedModel model(memory, {.on_step = [&] {
                        if (throws.exchange(false)) throw std::runtime_error("a kernel failed");
                      }});
  model.warm_up = [](int) { return WarmUpWith(5); };
  EXPECT_EQ(ErrorReason(model.Decode()), "ENGINE_DOWN");
  while (model.scheduler->health().restarts == 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(model.Decode(), IsOk());
  EXPECT_EQ(model.builds, 2);
}

// Many callers of four models of which two fit: all are answered, and there are never three.
TEST(LoadOnDemandTest, ServesMoreModelsThanFitUnderARandomLoad) {
  EngineMemory memory(5 * kEngineBytes / 2);
  std::atomic<int> most = 0;
  std::vector<std::unique_ptr<DemandedModel>> models;
  for (int i = 0; i < 4; ++i) models.push_back(std::make_unique<DemandedModel>(memory));
  for (auto& model : models) {
    model->on_build = [&] {
      int alive = 1;  // the one that is about to be built
      for (const auto& other : models) alive += other->alive;
      most = std::max<int>(most, alive);
    };
  }
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      std::mt19937 random(caller);
      for (int i = 0; i < 25; ++i)
        EXPECT_THAT(models[random() % 4]->Decode(5 + static_cast<int>(random() % 9)), IsOk());
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(most, 2);
  int loads = 0;
  for (const auto& model : models) loads += model->builds;
  EXPECT_GT(loads, 4) << "some were loaded again";
}

}  // namespace
}  // namespace linnet::server
