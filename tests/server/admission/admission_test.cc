#include "server/admission/admission.h"
#include "server/metrics/metrics.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kCall = Admission::kBytesPerCall;

struct AdmissionTest : ::testing::Test {
  absl::StatusOr<Permit> Enter(int64_t bytes, const Caller& caller = {.client = "a"}) {
    return admission.Enter(caller, bytes);
  }
  static CallWork Tokens(int64_t tokens, absl::Time deadline = absl::InfiniteFuture()) {
    return {.model = "en-de",
            .size = {.tokens = tokens, .longest = 1, .rows = 1},
            .deadline = deadline};
  }
  // The engine has one row and finishes ten tokens of work in a second.
  void Full() { Step(absl::Milliseconds(100)); }
  void Step(absl::Duration step) {
    admission.StepMade("en-de",
                       {.rows = 1,
                        .finished_tokens = 10,
                        .finished_steps = 10,
                        .rows_limit = 1,
                        .stepped = true,
                        .ended = now},
                       step);
  }

  absl::Time now = absl::FromUnixSeconds(1'000'000);
  const Caller other{.client = "b"};
  Metrics metrics;
  // One call gets 100 tokens, and one client 12 calls.
  Admission admission{{.max_tokens = 134, .max_bytes = 16 * kCall}, metrics};
};

TEST_F(AdmissionTest, GivesBackWhatAPermitHoldsWhenItIsDestroyed) {
  {
    auto permit = Enter(10);
    ASSERT_THAT(permit, IsOk());
    ASSERT_THAT(permit->Charge(Tokens(100), now), IsOk());
    EXPECT_EQ(admission.tokens(), 100);
    EXPECT_EQ(admission.bytes(), kCall + 10);
  }
  EXPECT_EQ(admission.tokens(), 0);
  EXPECT_EQ(admission.bytes(), 0);
}

TEST_F(AdmissionTest, GivesBackWorkAsItEndsAndNeverMoreThanCharged) {
  auto permit = Enter(10);
  ASSERT_THAT(permit->Charge(Tokens(60), now), IsOk());
  permit->GiveBack(25);
  EXPECT_EQ(admission.tokens(), 35);
  permit->GiveBack(50);
  EXPECT_EQ(admission.tokens(), 0);
  EXPECT_EQ(admission.bytes(), kCall + 10);
}

TEST_F(AdmissionTest, ChargesTheWorkThatIsExpected) {
  // Targets take two steps for each token of their sources.
  admission.StepMade("en-de", {.finished_steps = 20, .finished_source_tokens = 10, .rows_limit = 1},
                     absl::Seconds(1));
  CallWork work = Tokens(100);
  work.size.source = 7;
  auto permit = Enter(0), second = Enter(0), third = Enter(0, other);
  ASSERT_THAT(permit->Charge(work, now), IsOk());
  EXPECT_EQ(admission.tokens(), 21);
  for (int part = 0; part < 3; ++part) permit->GiveBack(30);
  EXPECT_EQ(admission.tokens(), 3) << "what ended is given back in proportion";
  permit->GiveBack(10);
  EXPECT_EQ(admission.tokens(), 0);
  work.size.source = 33;
  ASSERT_THAT(second->Charge(work, now), IsOk());
  EXPECT_THAT(third->Charge(work, now),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("has 99 tokens of work, the limit is 134: this call needs 99")));
  work.size.tokens = 101;
  EXPECT_EQ(ErrorReason(third->Charge(work, now)), "CALL_TOO_LARGE") << "its targets may be long";
}

TEST_F(AdmissionTest, NextWorkIsChargedAsExpectedOfItsModel) {
  admission.StepMade("de-fr", {.finished_steps = 20, .finished_source_tokens = 10, .rows_limit = 1},
                     absl::Seconds(1));
  CallWork work = Tokens(40);
  work.next = {.model = "de-fr", .size = {.tokens = 50, .longest = 1, .rows = 1, .source = 5}};
  auto permit = Enter(0);
  ASSERT_THAT(permit->Charge(work, now), IsOk());
  EXPECT_EQ(admission.tokens(), 40 + 15);
  permit->Continue({.model = "de-fr", .size = {.tokens = 50, .source = 6}}, now);
  EXPECT_EQ(admission.tokens(), 18);
}

TEST_F(AdmissionTest, LongQueueIsNoticedBeforeTheTextIsRead) {
  auto busy = Enter(1), permit = Enter(1);
  ASSERT_THAT(busy->Charge(Tokens(50), now), IsOk());
  EXPECT_THAT(permit->CheckWait("en-de", now + absl::Seconds(1), now), IsOk()) << "unknown speed";
  Full();
  // It would wait for 5 s, three quarters of its time at most.
  const absl::Status status = permit->CheckWait("en-de", now + absl::Seconds(6.6), now);
  EXPECT_EQ(ErrorReason(status), "DEADLINE_TOO_CLOSE") << status;
  EXPECT_THAT(permit->CheckWait("en-de", now + absl::Seconds(6.7), now), IsOk());
  EXPECT_THAT(permit->CheckWait("de-fr", now + absl::Seconds(1), now), IsOk()) << "another model";
  EXPECT_THAT(Enter(1, other)->CheckWait("en-de", now + absl::Seconds(1), now), IsOk())
      << "fair queueing puts another client first";
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_rejected_total{reason=\"deadline\"} 1\n"));
}

TEST_F(AdmissionTest, ChargesTheNextModelsWorkFromTheStart) {
  auto permit = Enter(10);
  CallWork work = Tokens(40);
  work.next = {.model = "de-fr", .size = {.tokens = 61, .longest = 1, .rows = 1}};
  EXPECT_EQ(ErrorReason(permit->Charge(work, now)), "CALL_TOO_LARGE") << "together 101 of 100";
  EXPECT_FALSE(permit->has_next());
  work.next->size.tokens = 30;
  ASSERT_THAT(permit->Charge(work, now), IsOk());
  EXPECT_EQ(admission.tokens(), 70);
  permit->GiveBack(50);
  EXPECT_EQ(admission.tokens(), 30) << "the next work is kept";
  EXPECT_TRUE(permit->has_next());
  // Its size is known now, and is more than there is room for: the call is half done.
  auto filler = Enter(0, other);
  ASSERT_THAT(filler->Charge(Tokens(50), now), IsOk());
  permit->Continue({.model = "de-fr", .size = {.tokens = 90, .longest = 1, .rows = 1}}, now);
  EXPECT_EQ(admission.tokens(), 140);
  EXPECT_FALSE(permit->has_next());
  permit->GiveBack(90);
  EXPECT_EQ(admission.tokens(), 50);
}

TEST_F(AdmissionTest, GivesBackTheNextWorkOfACallThatEndsEarly) {
  CallWork work = Tokens(40);
  work.next = {.model = "de-fr", .size = {.tokens = 30, .longest = 1, .rows = 1}};
  auto permit = Enter(10);
  ASSERT_THAT(permit->Charge(work, now), IsOk());
  permit->GiveBackWork();
  EXPECT_EQ(admission.tokens(), 0);
  {
    auto destroyed = Enter(10);
    ASSERT_THAT(destroyed->Charge(work, now), IsOk());
  }
  EXPECT_EQ(admission.tokens(), 0);
}

TEST_F(AdmissionTest, DeadlineIsForTheWorkOfBothModels) {
  for (int i = 0; i < 50; ++i) Full();
  for (int i = 0; i < 50; ++i) {
    admission.StepMade("de-fr",
                       {.rows = 1,
                        .finished_tokens = 10,
                        .finished_steps = 10,
                        .rows_limit = 1,
                        .stepped = true,
                        .ended = now},
                       absl::Milliseconds(100));
  }
  // Keeps the engine from being idle, so that nothing is admitted as a probe.
  auto running = Enter(0, other);
  ASSERT_THAT(running->Charge(Tokens(1), now), IsOk());
  // Each model needs a second or two for ten steps.
  CallWork work{.model = "en-de",
                .size = {.tokens = 10, .longest = 10, .rows = 1},
                .deadline = now + absl::Seconds(4)};
  auto permit = Enter(0);
  ASSERT_THAT(permit->Charge(work, now), IsOk());
  permit->GiveBackWork();
  work.next = {.model = "de-fr", .size = {.tokens = 40, .longest = 40, .rows = 1}};
  EXPECT_EQ(ErrorReason(permit->Charge(work, now)), "DEADLINE_TOO_SHORT");
  work.deadline = now + absl::Seconds(60);
  EXPECT_THAT(permit->Charge(work, now), IsOk());
}

TEST_F(AdmissionTest, DeadlineIsForTheLoadOfAModelWithoutSteps) {
  auto running = Enter(0, other), permit = Enter(0);
  ASSERT_THAT(running->Charge(Tokens(1), now), IsOk());
  CallWork work = Tokens(10, now + absl::Seconds(1));
  work.load = absl::Seconds(2);
  const absl::Status status = permit->Charge(work, now);
  EXPECT_EQ(ErrorReason(status), "DEADLINE_TOO_CLOSE") << "another server may have loaded it";
  EXPECT_THAT(status.message(), HasSubstr("may take 2s, the deadline is in 1s"));
  EXPECT_EQ(admission.tokens(), 1);
  work.load = absl::Milliseconds(999);
  EXPECT_THAT(permit->Charge(work, now), IsOk()) << "no safety factor";
}

TEST_F(AdmissionTest, LoadOfAModelAddsToTheTimeOfItsWork) {
  Full();
  auto running = Enter(0, other), permit = Enter(0);
  ASSERT_THAT(running->Charge(Tokens(1), now), IsOk());
  CallWork work = Tokens(10, now + absl::Seconds(5));
  work.load = absl::Seconds(4.85);  // and 200 ms of work
  EXPECT_EQ(ErrorReason(permit->Charge(work, now)), "DEADLINE_TOO_CLOSE");
  work.load = absl::Seconds(3.5);
  EXPECT_THAT(permit->Charge(work, now), IsOk());
}

TEST_F(AdmissionTest, NoProbeLoadsAModel) {
  Full();
  CallWork work = Tokens(10, now + absl::Milliseconds(50));
  work.load = absl::Seconds(1);
  EXPECT_EQ(ErrorReason(Enter(0)->Charge(work, now)), "DEADLINE_TOO_SHORT");
  work.load = absl::ZeroDuration();
  EXPECT_THAT(Enter(0)->Charge(work, now), IsOk()) << "a probe";
}

// Otherwise one load that took long would be expected of all later ones, and none would come.
TEST_F(AdmissionTest, LoadThatIsExpectedToTakeTooLongIsTriedNowAndThen) {
  constexpr absl::Duration kLoad = absl::Seconds(80), kLeft = absl::Seconds(1);
  CallWork work = Tokens(10);
  work.load = kLoad;
  const auto reason_after = [&](absl::Duration pause) {
    now += pause;
    work.deadline = now + kLeft;
    return ErrorReason(Enter(0)->Charge(work, now));
  };
  EXPECT_EQ(reason_after(absl::ZeroDuration()), "DEADLINE_TOO_CLOSE") << "it may unload a model";
  EXPECT_EQ(reason_after(9.9 * kLoad), "DEADLINE_TOO_CLOSE") << "more than a tenth of the time";
  EXPECT_EQ(reason_after(0.2 * kLoad), "");
  EXPECT_EQ(reason_after(9.9 * kLoad), "DEADLINE_TOO_CLOSE");
  EXPECT_EQ(reason_after(0.2 * kLoad), "");
}

TEST_F(AdmissionTest, LoadOfTheSecondModelIsTriedWhileTheFirstIsBusy) {
  auto running = Enter(0, other);
  ASSERT_THAT(running->Charge(Tokens(1), now), IsOk());
  CallWork work = Tokens(10, now + absl::Seconds(1));
  work.next = {.model = "de-fr", .size = {.tokens = 10, .longest = 1, .rows = 1}};
  work.load = absl::Seconds(80);
  EXPECT_EQ(ErrorReason(Enter(0)->Charge(work, now)), "DEADLINE_TOO_CLOSE");
  now += absl::Minutes(15);
  work.deadline = now + absl::Seconds(1);
  EXPECT_THAT(Enter(0)->Charge(work, now), IsOk());
}

TEST_F(AdmissionTest, LargestCallIsAdmittedAlone) {
  EXPECT_EQ(admission.MaxCallTokens({}), 100);
  EXPECT_EQ(admission.MaxCallTokens({.client = "a", .id = "x"}), 75);
  const Admission by_default({}, metrics);
  EXPECT_EQ(by_default.MaxCallTokens({}), Admission::kMaxCallTokens);
  const Admission large({.max_tokens = 100 * Admission::kMaxCallTokens}, metrics);
  EXPECT_EQ(large.MaxCallTokens({}), 25 * Admission::kMaxCallTokens);
}

TEST_F(AdmissionTest, GivesBackAMovedPermitOnce) {
  auto first = Enter(1);
  auto second = Enter(2);
  ASSERT_THAT(first->Charge(Tokens(7), now), IsOk());
  Permit kept = *std::move(first);
  EXPECT_EQ(admission.bytes(), 2 * kCall + 3);
  kept = *std::move(second);  // gives back what it held
  EXPECT_EQ(admission.bytes(), kCall + 2);
  EXPECT_EQ(admission.tokens(), 0);
}

TEST_F(AdmissionTest, RejectsExcessWorkWithNumbersAndRetryDelay) {
  auto busy = Enter(1);
  ASSERT_THAT(busy->Charge(Tokens(70), now), IsOk());
  auto permit = Enter(1, other);
  ASSERT_THAT(permit, IsOk());
  const absl::Status status = permit->Charge(Tokens(49), now);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("70"), HasSubstr("the limit is 134"), HasSubstr("49"))));
  EXPECT_EQ(ErrorReason(status), "TOO_MUCH_WORK");
  EXPECT_EQ(admission.tokens(), 70);
  EXPECT_THAT(permit->Charge(Tokens(48), now), IsOk()) << "the permit still admits less";
}

TEST_F(AdmissionTest, RejectsClientBeyondItsShareAndAdmitsOthers) {
  auto first = Enter(1), second = Enter(1), third = Enter(1, other);
  ASSERT_THAT(first->Charge(Tokens(60), now), IsOk());
  const absl::Status status = second->Charge(Tokens(41), now);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the limit is 100")));
  EXPECT_EQ(ErrorReason(status), "SHARE_USED");
  EXPECT_THAT(third->Charge(Tokens(20), now), IsOk());
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_rejected_total{reason=\"share\"} 1\n"));
}

TEST_F(AdmissionTest, RetryDelayIsTimeToDrainWithJitter) {
  auto busy = Enter(1), permit = Enter(1, other);
  ASSERT_THAT(busy->Charge(Tokens(90), now), IsOk());
  std::set<absl::Duration> delays;
  for (int i = 0; i < 20; ++i) {
    const absl::Duration delay = RetryDelay(permit->Charge(Tokens(40), now));
    EXPECT_GE(delay, absl::Milliseconds(750)) << "a second while the speed is unknown";
    EXPECT_LE(delay, absl::Milliseconds(1250));
  }
  Full();
  for (int i = 0; i < 20; ++i) {
    delays.insert(RetryDelay(permit->Charge(Tokens(40), now)));
    EXPECT_GE(*delays.begin(), absl::Seconds(9 * 0.74));
    EXPECT_LE(*delays.rbegin(), absl::Seconds(9 * 1.26));
  }
  EXPECT_GT(delays.size(), 10) << "clients must not all retry at once";
}

TEST_F(AdmissionTest, RejectsCallThatCannotMeetItsDeadline) {
  auto busy = Enter(1), permit = Enter(1);
  ASSERT_THAT(busy->Charge(Tokens(50), now), IsOk());
  Full();
  // It would wait for 5 s and end after 6 s; at most three quarters of its time may be waiting.
  const absl::Status status = permit->Charge(Tokens(10, now + absl::Seconds(6.5)), now);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               AllOf(HasSubstr("may take 6.6"), HasSubstr("in 6.5s"))));
  EXPECT_EQ(ErrorReason(status), "DEADLINE_TOO_CLOSE");
  EXPECT_EQ(admission.tokens(), 50);
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_rejected_total{reason=\"deadline\"} 1\n"));
  EXPECT_THAT(permit->Charge(Tokens(10, now + absl::Seconds(6.7)), now), IsOk());
}

TEST_F(AdmissionTest, DeadlineTooShortForAnIdleServerIsAClientError) {
  auto busy = Enter(1), permit = Enter(1);
  ASSERT_THAT(busy->Charge(Tokens(50), now), IsOk());
  Full();
  const absl::Status status = permit->Charge(Tokens(10, now + absl::Milliseconds(90)), now);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               AllOf(HasSubstr("may take 100ms even when the server is idle"),
                                     HasSubstr("in 90ms"))));
  EXPECT_EQ(ErrorReason(status), "DEADLINE_TOO_SHORT");
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("linnet_rejected_total{reason=\"deadline\"} 0\n"),
                    HasSubstr("linnet_rejected_total{reason=\"short_deadline\"} 1\n")));
}

TEST_F(AdmissionTest, IdleServerAdmitsProbes) {
  Full();
  int tried = 0;
  for (int i = 0; i < 1000; ++i) {
    const absl::Time then = now + i * absl::Milliseconds(50);
    auto permit = Enter(1);
    tried += permit->Charge(Tokens(10, then + absl::Milliseconds(50)), then).ok();
  }
  EXPECT_EQ(tried, 4 + 99) << "a tenth of the time, and some more at first";
  auto busy = Enter(1), permit = Enter(1);
  const absl::Time later = now + absl::Hours(1);
  ASSERT_THAT(busy->Charge(Tokens(10), later), IsOk());
  EXPECT_FALSE(permit->Charge(Tokens(10, later + absl::Milliseconds(50)), later).ok())
      << "other calls would wait for it";
}

TEST_F(AdmissionTest, ProbeCorrectsTheEstimateForLaterCalls) {
  Step(absl::Seconds(1));  // a slow step: the machine was busy
  now += absl::Minutes(10);
  const auto charge = [&] {
    return Enter(1)->Charge(Tokens(10, now + absl::Milliseconds(150)), now);
  };
  ASSERT_THAT(charge(), IsOk());
  EXPECT_FALSE(charge().ok());
  Full();
  for (int i = 0; i < 100; ++i) EXPECT_THAT(charge(), IsOk());
}

TEST_F(AdmissionTest, CallThatNeverFitsIsInvalidArgument) {
  auto permit = Enter(1);
  EXPECT_THAT(permit->Charge(Tokens(101), now),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 100")));
}

TEST_F(AdmissionTest, LimitsBytesAndCountsAFixedCostPerCall) {
  std::vector<Permit> held;
  const auto fill = [&](const Caller& client) {
    auto permit = Enter(0, client);
    for (; permit.ok(); permit = Enter(0, client)) held.push_back(*std::move(permit));
    return permit.status();
  };
  const absl::Status own = fill({.client = "a"});
  EXPECT_EQ(held.size(), 12);
  EXPECT_THAT(own, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is 196608")));
  EXPECT_EQ(ErrorReason(own), "SHARE_USED");
  EXPECT_EQ(ErrorReason(fill(other)), "SHARE_USED");
  EXPECT_EQ(held.size(), 15);
  const absl::Status full = fill({.client = "c"});
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is 262144")));
  EXPECT_EQ(ErrorReason(full), "TOO_MANY_BYTES");
}

TEST_F(AdmissionTest, PermitGrowsWithItsCallUpToTheLimit) {
  auto permit = Enter(0), second = Enter(0);
  EXPECT_THAT(permit->Hold(10 * kCall), IsOk());
  EXPECT_EQ(admission.bytes(), 12 * kCall);
  const absl::Status full = second->Hold(4 * kCall + 1);
  EXPECT_EQ(ErrorReason(full), "TOO_MANY_BYTES") << full;
  EXPECT_EQ(admission.bytes(), 12 * kCall) << "the permit is unchanged";
  EXPECT_EQ(ErrorReason(permit->Hold(2 * kCall)), "CALL_TOO_LARGE") << "it never fits";
  permit->SetBytes(10 * kCall);  // in use already, so it is not checked
  EXPECT_EQ(admission.bytes(), 11 * kCall);
  permit->SetBytes(kCall / 2);
  EXPECT_EQ(admission.bytes(), kCall + kCall / 2);
}

TEST_F(AdmissionTest, MetricsShowAdmittedWork) {
  auto permit = Enter(4), more = Enter(4, other);
  Full();
  ASSERT_THAT(permit->Charge(Tokens(25), now), IsOk());
  EXPECT_FALSE(more->Charge(Tokens(82), now).ok());
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("\nlinnet_admitted_tokens 25\n"));
  EXPECT_THAT(page, HasSubstr("\nlinnet_admitted_bytes 32776\n"));
  EXPECT_THAT(page, HasSubstr("\nlinnet_admitted_tokens_limit 134\n"));
  EXPECT_THAT(page, HasSubstr("\nlinnet_drain_seconds 2.5\n"));
  EXPECT_THAT(page, HasSubstr("linnet_rejected_total{reason=\"tokens\"} 1\n"));
}

TEST_F(AdmissionTest, ConcurrentCallsGiveEverythingBack) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        auto permit = Enter(i, {.client = std::string(1, static_cast<char>('a' + (t + i) % 3))});
        if (!permit.ok()) continue;
        permit->Charge(Tokens(i % 50), now).IgnoreError();
        permit->Hold(i % 90).IgnoreError();
        permit->GiveBack(i % 20);
        if (i % 3 == 0) permit->SetBytes(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admission.tokens(), 0);
  EXPECT_EQ(admission.bytes(), 0);
}

}  // namespace
}  // namespace linnet::server
