#include "server/errors.h"

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

template <typename Detail>
std::vector<Detail> Details(const absl::Status& status) {
  std::vector<Detail> found;
  const google::rpc::Status proto = ToProto(status);
  for (const auto& any : proto.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) found.push_back(detail);
  }
  return found;
}

TEST(ErrorsTest, ABadFieldIsNamedInTheMessageAndInTheDetails) {
  const absl::Status status = BadField("contents[3]", "EMPTY", "text is empty", {{"index", "3"}});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "contents[3]: text is empty"));
  const auto bad = Details<google::rpc::BadRequest>(status);
  ASSERT_EQ(bad.size(), 1);
  EXPECT_EQ(bad[0].field_violations(0).field(), "contents[3]");
  EXPECT_EQ(bad[0].field_violations(0).description(), "text is empty");
  const auto info = Details<google::rpc::ErrorInfo>(status);
  ASSERT_EQ(info.size(), 1);
  EXPECT_EQ(info[0].domain(), "linnet");
  EXPECT_EQ(info[0].reason(), "EMPTY");
  EXPECT_EQ(info[0].metadata().at("index"), "3");
}

TEST(ErrorsTest, EveryErrorCarriesExactlyOneErrorInfo) {
  for (const absl::Status& status :
       {BadField("f", "R", "m"), NoSuchModel("x", "m"), Busy("R", "m", absl::Seconds(1)),
        ShuttingDown(), WithErrorInfo(absl::InternalError("m")),
        WithErrorInfo(WithErrorInfo(ShuttingDown()))}) {
    EXPECT_EQ(Details<google::rpc::ErrorInfo>(status).size(), 1) << status;
    EXPECT_EQ(ToProto(status).code(), static_cast<int>(status.code()));
  }
  EXPECT_THAT(WithErrorInfo(absl::OkStatus()), IsOk());
}

TEST(ErrorsTest, AMissingModelIsAResource) {
  const auto resources =
      Details<google::rpc::ResourceInfo>(NoSuchModel("en-xx", "no model \"en-xx\""));
  ASSERT_EQ(resources.size(), 1);
  EXPECT_EQ(resources[0].resource_type(), "linnet.v1.Model");
  EXPECT_EQ(resources[0].resource_name(), "en-xx");
}

TEST(ErrorsTest, RetryDelaysSurviveTheTrip) {
  EXPECT_EQ(RetryDelay(Busy("R", "m", absl::Milliseconds(1250))), absl::Milliseconds(1250));
  EXPECT_EQ(RetryDelay(absl::InternalError("m")), absl::InfiniteDuration());
}

TEST(ErrorsTest, OnlyInvalidArgumentsArePutDownToAField) {
  EXPECT_THAT(AtField("contents[0]", "R", absl::InvalidArgumentError("byte 3 is wrong")),
              StatusIs(absl::StatusCode::kInvalidArgument, "contents[0]: byte 3 is wrong"));
  EXPECT_EQ(AtField("contents[0]", "R", absl::InternalError("m")), absl::InternalError("m"));
}

}  // namespace
}  // namespace linnet::server
