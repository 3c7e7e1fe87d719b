#include "server/models/bounded_read.h"

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::HasSubstr;
using Text = absl::StatusOr<std::string>;

TEST(BoundedReadTest, ReturnsTheResultOrTheError) {
  const auto read = [](Text result) {
    return ReadWithin<Text>(absl::InfiniteDuration(), "models/a", [result] { return result; });
  };
  EXPECT_EQ(read("bytes").value_or(""), "bytes");
  EXPECT_THAT(read(absl::NotFoundError("gone")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadWithin<absl::Status>(absl::InfiniteDuration(), "models/a",
                                       []() -> absl::Status { throw std::runtime_error("odd"); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("odd")));
}

TEST(BoundedReadTest, HungBundleFailsAloneAndIsReadByOneThread) {
  const auto go_on = std::make_shared<absl::Notification>();
  const auto ended = std::make_shared<absl::Notification>();
  const auto hang = [&] {
    return ReadWithin<Text>(absl::ZeroDuration(), "models/hangs", [go_on, ended]() -> Text {
      go_on->WaitForNotification();
      ended->Notify();
      return "late";
    });
  };
  EXPECT_THAT(hang(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("models/hangs")));
  EXPECT_THAT(hang(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("still being read")));
  EXPECT_THAT(ReadWithin<Text>(absl::InfiniteDuration(), "models/other", [] { return "read"; }),
              IsOk());
  go_on->Notify();
  ended->WaitForNotification();
}

}  // namespace
}  // namespace linnet::server
