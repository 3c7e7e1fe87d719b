#include "tests/support/status_matchers.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace linnet {
namespace {

using ::testing::DescribeMatcher;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;
using ::testing::StringMatchResultListener;

const absl::Status kBusy = absl::ResourceExhaustedError("busy, 9 wait");

template <typename Value, typename Matcher>
std::string Explain(const Matcher& matcher, const Value& value) {
  StringMatchResultListener listener;
  ::testing::ExplainMatchResult(matcher, value, &listener);
  return listener.str();
}

TEST(StatusMatchersTest, IsOkTakesStatusAndStatusOr) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(absl::StatusOr<int>(3), IsOk());
  EXPECT_THAT(kBusy, Not(IsOk()));
  EXPECT_THAT(absl::StatusOr<int>(kBusy), Not(IsOk()));
}

TEST(StatusMatchersTest, StatusIsComparesCodeAndMessage) {
  EXPECT_THAT(kBusy, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(absl::StatusOr<int>(kBusy),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("9 wait")));
  EXPECT_THAT(kBusy, StatusIs(absl::StatusCode::kResourceExhausted, "busy, 9 wait"));
  EXPECT_THAT(kBusy, Not(StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_THAT(kBusy, Not(StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("8 wait"))));
  EXPECT_THAT(absl::OkStatus(), Not(StatusIs(absl::StatusCode::kUnknown)));
}

TEST(StatusMatchersTest, IsOkAndHoldsTakesValuesAndMatchers) {
  EXPECT_THAT(absl::StatusOr<int>(3), IsOkAndHolds(3));
  EXPECT_THAT(absl::StatusOr<int>(3), Not(IsOkAndHolds(4)));
  EXPECT_THAT(absl::StatusOr<int>(kBusy), Not(IsOkAndHolds(3)));
  EXPECT_THAT(absl::StatusOr<std::string>("text"), IsOkAndHolds("text"));
  EXPECT_THAT((absl::StatusOr<std::vector<int>>({1, 2})), IsOkAndHolds(ElementsAre(1, 2)));
  EXPECT_THAT(absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(5)),
              IsOkAndHolds(Pointee(5)));
}

TEST(StatusMatchersTest, MismatchPrintsTheActualStatus) {
  EXPECT_THAT(Explain(IsOk(), kBusy), HasSubstr("RESOURCE_EXHAUSTED: busy, 9 wait"));
  EXPECT_THAT(Explain(IsOkAndHolds(3), absl::StatusOr<int>(kBusy)), HasSubstr("busy, 9 wait"));
  EXPECT_THAT(Explain(StatusIs(absl::StatusCode::kUnavailable), kBusy), HasSubstr("busy, 9 wait"));
  EXPECT_THAT(DescribeMatcher<absl::Status>(StatusIs(absl::StatusCode::kUnavailable, "gone")),
              HasSubstr("has code UNAVAILABLE and a message that is equal to \"gone\""));
}

}  // namespace
}  // namespace linnet
