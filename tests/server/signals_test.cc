#include "server/base/signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/notification.h"

namespace linnet::server {
namespace {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

constexpr int kAlive = 42;

// Each test runs in a process of its own, because signals are per process.
struct SignalsTest : ::testing::Test {
  SignalsTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Sends the signal; when this returns, its default effect, if any, has happened.
void Send(int signal) { kill(getpid(), signal); }

void Drain(Signals& signals) {
  signals.Serving([] {});
  Send(SIGTERM);
  if (signals.WaitForStop() != SIGTERM) std::_Exit(EXIT_FAILURE);
}

TEST_F(SignalsTest, StopSignalEndsAProcessThatLoadsModels) {
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          Signals signals;
          Send(signal);
          while (true) pause();
        },
        ExitedWithCode(0), "stopped.*models are loading")
        << signal;
  }
}

TEST_F(SignalsTest, IgnoresHangupWhileModelsLoad) {
  EXPECT_EXIT(
      {
        Signals signals;
        for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) Send(signal);
        Drain(signals);
        std::_Exit(kAlive);
      },
      ExitedWithCode(kAlive), "");
}

TEST_F(SignalsTest, HangupReloadsWhileServing) {
  EXPECT_EXIT(
      {
        test::Notification reloaded;
        Signals signals;
        signals.Serving([&] { reloaded.Open(); });
        Send(SIGHUP);
        reloaded.Pass();
        signals.Stop();  // SIGHUP has not stopped it
        std::_Exit(signals.WaitForStop() == 0 ? kAlive : EXIT_FAILURE);
      },
      ExitedWithCode(kAlive), "");
}

TEST_F(SignalsTest, ReloadThatThrowsIsLoggedAndNextSignalWorks) {
  EXPECT_EXIT(
      {
        Signals signals;
        signals.Serving([] { throw std::bad_alloc(); });
        Send(SIGHUP);
        Send(SIGTERM);
        std::_Exit(signals.WaitForStop() == SIGTERM ? kAlive : EXIT_FAILURE);
      },
      ExitedWithCode(kAlive), "signal_failed why=std::bad_alloc");
}

TEST_F(SignalsTest, OtherSignalsDoNotEndADrain) {
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) {
    EXPECT_EXIT(
        {
          Signals signals;
          Drain(signals);
          Send(signal);
          std::_Exit(kAlive);
        },
        ExitedWithCode(kAlive), "")
        << signal;
  }
}

TEST_F(SignalsTest, SecondStopSignalEndsADrainAtOnce) {
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          Signals signals;
          Drain(signals);
          Send(signal);
          while (true) pause();
        },
        KilledBySignal(signal), "")
        << signal;
  }
}

TEST_F(SignalsTest, StopEndsAWaitThatHasBegun) {
  EXPECT_EXIT(
      {
        Signals signals;
        signals.Serving([] {});
        std::thread waiting(
            [&] { std::_Exit(signals.WaitForStop() == 0 ? kAlive : EXIT_FAILURE); });
        signals.Stop();
        waiting.join();
      },
      ExitedWithCode(kAlive), "");
}

TEST_F(SignalsTest, DestructorEndsTheThread) {
  EXPECT_EXIT(
      {
        {
          Signals signals;
          Drain(signals);
        }
        std::_Exit(kAlive);
      },
      ExitedWithCode(kAlive), "");
}

}  // namespace
}  // namespace linnet::server
