#include "server/admission.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "server/errors.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kCall = 4096;  // what a call weighs beside its text

struct AdmissionTest : ::testing::Test {
  Metrics metrics;
  Admission admission{{.max_tokens = 100, .max_bytes = 3 * kCall}, metrics};
};

TEST_F(AdmissionTest, WhatAPermitHoldsGoesBackWhenItDies) {
  {
    auto permit = admission.Enter(10);
    ASSERT_THAT(permit, IsOk());
    ASSERT_THAT(permit->Charge(60), IsOk());
    ASSERT_THAT(permit->Charge(40), IsOk());
    EXPECT_EQ(admission.tokens(), 100);
    EXPECT_EQ(admission.bytes(), kCall + 10);
  }
  EXPECT_EQ(admission.tokens(), 0);
  EXPECT_EQ(admission.bytes(), 0);
}

TEST_F(AdmissionTest, AMovedPermitGoesBackOnce) {
  auto first = admission.Enter(1);
  auto second = admission.Enter(2);
  ASSERT_THAT(first->Charge(7), IsOk());
  Permit kept = *std::move(first);
  EXPECT_EQ(admission.bytes(), 2 * kCall + 3);
  kept = *std::move(second);  // gives back what it held
  EXPECT_EQ(admission.bytes(), kCall + 2);
  EXPECT_EQ(admission.tokens(), 0);
}

TEST_F(AdmissionTest, TooMuchWorkIsRefusedForNowWithNumbersAndARetryHint) {
  auto busy = admission.Enter(1);
  ASSERT_THAT(busy->Charge(70), IsOk());
  auto permit = admission.Enter(1);
  ASSERT_THAT(permit, IsOk());
  const absl::Status status = permit->Charge(31);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("70"), HasSubstr("at most 100"), HasSubstr("31"))));
  EXPECT_EQ(ErrorReason(status), "TOO_MUCH_WORK");
  EXPECT_EQ(RetryDelay(status), absl::Seconds(1));
  EXPECT_EQ(admission.tokens(), 70);
  EXPECT_THAT(permit->Charge(30), IsOk()) << "the permit is still good for less";
}

TEST_F(AdmissionTest, WhatWillNeverFitIsTheCallersToChange) {
  auto permit = admission.Enter(1);
  EXPECT_THAT(permit->Charge(101),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 100")));
}

TEST_F(AdmissionTest, BytesAreBoundedAtTheDoorAndEmptyCallsWeighSomething) {
  auto a = admission.Enter(0), b = admission.Enter(0), c = admission.Enter(0);
  ASSERT_THAT(c, IsOk());
  auto d = admission.Enter(0);
  EXPECT_THAT(d, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 12288")));
  EXPECT_EQ(ErrorReason(d.status()), "TOO_MANY_BYTES");
}

TEST_F(AdmissionTest, ThePageShowsWhatIsInTheHouse) {
  auto permit = admission.Enter(4);
  ASSERT_THAT(permit->Charge(25), IsOk());
  EXPECT_FALSE(permit->Charge(76).ok());
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("\nlinnet_admitted_tokens 25\n"));
  EXPECT_THAT(page, HasSubstr("\nlinnet_admitted_bytes 4100\n"));
  EXPECT_THAT(page, HasSubstr("\nlinnet_admitted_tokens_limit 100\n"));
  EXPECT_THAT(page, HasSubstr("linnet_rejected_total{reason=\"tokens\"} 1\n"));
}

TEST_F(AdmissionTest, ManyThreadsLeaveAnEmptyHouse) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        auto permit = admission.Enter(i);
        if (permit.ok()) permit->Charge(i % 50).IgnoreError();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admission.tokens(), 0);
  EXPECT_EQ(admission.bytes(), 0);
}

}  // namespace
}  // namespace linnet::server
