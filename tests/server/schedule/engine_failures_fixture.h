#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/monotonic.h"
#include "server/schedule/scheduler.h"
#include "tests/support/echo_engine.h"
#include "tests/support/notification.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {

// A scheduler whose engines come from a list that the test fills, with failures to build one. The
// stall timeout is an hour, the load timeout two hours, and two failed rebuilds are allowed.
class EngineFailures : public ::testing::Test {
 protected:
  using Make = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;

  void Then(test::EchoEngine::Options options) {
    engines_.push_back([options] { return std::make_unique<test::EchoEngine>(options); });
  }
  void ThenFail(const char* why) {
    engines_.push_back([why] { return absl::InternalError(why); });
  }
  // Making the engine opens `making` and waits for `go_on`.
  void ThenHang(test::Notification& making, test::Notification& go_on) {
    engines_.push_back([&]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
      making.Open();
      go_on.Pass();
      return std::make_unique<test::EchoEngine>();
    });
  }
  void Start(BatcherOptions options = {}) {
    auto started = Scheduler::Start(
        [this]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          if (engines_.empty()) return std::make_unique<test::EchoEngine>();
          const Make make = engines_.front();
          engines_.pop_front();
          return make();
        },
        options, observer,
        {.stall_timeout = absl::Hours(1),
         .load_timeout = absl::Hours(2),
         .max_failed_rebuilds = 2,
         .supervisor = &supervisor},
        "en-de");
    ASSERT_THAT(started, IsOk());
    scheduler = *std::move(started);
  }
  absl::Status Submit(std::vector<model::TokenId> words, test::Waited& waited,
                      const std::string& request_id = "") {
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(test::Say(std::move(words), waited));
    one.front()->caller.request_id = request_id;
    return scheduler->Submit(one);
  }
  // Ticks the supervisor as if so many hours had passed.
  void TickAfter(double hours) { supervisor.Tick(After(MonotonicNow(), absl::Hours(hours))); }
  EngineHealth::State state() { return scheduler->health().state; }
  void UntilUp() {
    while (scheduler->health().state != EngineHealth::State::kUp) absl::SleepFor(kShort);
  }

  void UntilIdle() {
    while (!supervisor.idle_period().has_value()) absl::SleepFor(kShort);
  }
  void UntilRestarted() {
    while (scheduler->health().restarts == 0) absl::SleepFor(kShort);
  }

  static constexpr absl::Duration kShort = absl::Milliseconds(1);
  std::deque<Make> engines_;
  Scheduler::Observer observer;
  std::atomic<int> ends = 0;  // how often the supervisor asked to end the process
  Supervisor supervisor{[this] { ++ends; }};
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace linnet::server
