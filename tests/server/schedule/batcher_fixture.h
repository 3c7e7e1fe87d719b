#pragma once

#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "server/schedule/batcher.h"
#include "tests/support/echo_engine.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {

// A batcher with a virtual clock, which advances by a millisecond at every reading.
struct BatcherFixture {
  explicit BatcherFixture(test::EchoEngine::Options engine_options = {},
                          BatcherOptions options = {})
      : engine(std::move(engine_options)), batcher(engine, options) {}

  void Add(std::unique_ptr<Sequence> sequence) { ASSERT_THAT(batcher.Add(sequence, now), IsOk()); }
  StepReport Step() {
    return batcher.Step([this] { return now += absl::Milliseconds(1); });
  }
  int StepsUntilIdle() {
    int steps = 0;
    for (; !batcher.idle(); ++steps) Step();
    return steps;
  }

  absl::Time now = absl::FromUnixSeconds(1'000'000);
  test::EchoEngine engine;
  Batcher batcher;
};

}  // namespace linnet::server
