#pragma once

#include <string>

#include "google/rpc/error_details.pb.h"
#include "server/base/errors.h"
#include "server/text/text_request.h"
#include "tests/server/text_fixture.h"

namespace linnet::server {

// The path of the field that an error names.
inline std::string Field(const absl::Status& status) {
  const google::rpc::Status proto = ToProto(status);
  for (const auto& any : proto.details()) {
    google::rpc::BadRequest bad;
    if (any.UnpackTo(&bad)) return bad.field_violations(0).field();
  }
  return "";
}

// Requests checked by a house with small limits.
struct RequestFixture : ::testing::Test {
  TextFixture fixture;
  TextLimits limits{.max_contents = 3, .max_text_bytes = 100};

  template <typename Request>
  absl::Status Check(const Request& request) {
    return CheckRequest(request, *fixture.catalog, limits).status();
  }
  // The request is refused, and the error names the field and says this.
  template <typename Request>
  void ExpectBad(const Request& request, const std::string& field, const std::string& says) {
    const absl::Status status = Check(request);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(says)));
    EXPECT_EQ(Field(status), field);
  }
};

}  // namespace linnet::server
