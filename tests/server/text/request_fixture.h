#pragma once

#include <string>

#include "google/rpc/error_details.pb.h"
#include "server/base/errors.h"
#include "server/request/text_request.h"
#include "tests/server/text/text_fixture.h"

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

// Checks requests against a server with small limits.
struct RequestFixture : ::testing::Test {
  TextFixture fixture;
  TextLimits limits{.max_contents = 3, .max_text_bytes = 100};

  template <typename Request>
  absl::Status Check(const Request& request) {
    return CheckRequest(request, *fixture.catalog, limits).status();
  }
  // Expects INVALID_ARGUMENT for this field with a message that contains `says`.
  template <typename Request>
  void ExpectBad(const Request& request, const std::string& field, const std::string& message) {
    const absl::Status status = Check(request);
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(message)));
    EXPECT_EQ(Field(status), field);
  }
};

}  // namespace linnet::server
