// Tests the lines that ErrorText writes for each kind of detail.
#include <string>

#include "absl/strings/cord.h"
#include "client/library/client.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace linnet::client {
namespace {

template <typename Detail>
void Attach(const Detail& detail, absl::Status* status) {
  status->SetPayload("type.googleapis.com/" + Detail::descriptor()->full_name(),
                     absl::Cord(detail.SerializeAsString()));
}

TEST(ErrorTextTest, WithoutDetailsItIsCodeAndMessage) {
  EXPECT_EQ(ErrorText(absl::NotFoundError("no such model")), "NOT_FOUND: no such model");
}

TEST(ErrorTextTest, EachInvalidFieldHasALine) {
  absl::Status status = absl::InvalidArgumentError("2 fields are out of range");
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("options.beam_size");
  bad.mutable_field_violations(0)->set_description("0 is below 1");
  bad.add_field_violations()->set_field("options.n_best");
  bad.mutable_field_violations(1)->set_description("9 is above beam_size 5");
  Attach(bad, &status);
  EXPECT_EQ(ErrorText(status),
            "INVALID_ARGUMENT: 2 fields are out of range\n"
            "  field options.beam_size: 0 is below 1\n"
            "  field options.n_best: 9 is above beam_size 5");
}

TEST(ErrorTextTest, OnlyViolationDoesNotRepeatTheMessage) {
  absl::Status status = absl::InvalidArgumentError("contents is empty");
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("contents");
  bad.mutable_field_violations(0)->set_description("contents is empty");
  Attach(bad, &status);
  EXPECT_EQ(ErrorText(status), "INVALID_ARGUMENT: contents is empty\n  field contents");
}

TEST(ErrorTextTest, DoesNotRepeatFieldInMessage) {
  absl::Status status = absl::InvalidArgumentError("options.beam_size: is 99, at most 32");
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("options.beam_size");
  bad.mutable_field_violations(0)->set_description("is 99, at most 32");
  Attach(bad, &status);
  google::rpc::ErrorInfo info;
  info.set_reason("BAD_OPTION");
  (*info.mutable_metadata())["field"] = "options.beam_size";
  (*info.mutable_metadata())["limit"] = "32";
  Attach(info, &status);
  EXPECT_EQ(ErrorText(status),
            "INVALID_ARGUMENT: options.beam_size: is 99, at most 32\n"
            "  reason BAD_OPTION limit=32");
}

TEST(ErrorTextTest, DoesNotRepeatResourceInMessage) {
  absl::Status status = absl::NotFoundError("no model \"x\": there is en-de");
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("linnet.v1.Model");
  resource.set_resource_name("x");
  resource.set_description("no model \"x\": there is en-de");
  Attach(resource, &status);
  google::rpc::ErrorInfo info;
  info.set_reason("MODEL_NOT_FOUND");
  (*info.mutable_metadata())["name"] = "x";
  Attach(info, &status);
  EXPECT_EQ(ErrorText(status),
            "NOT_FOUND: no model \"x\": there is en-de\n"
            "  reason MODEL_NOT_FOUND");
}

TEST(ErrorTextTest, ShowsResourceRetryAndReasonInOrder) {
  absl::Status status = absl::ResourceExhaustedError("busy");
  google::rpc::ErrorInfo info;
  info.set_reason("ADMISSION");
  (*info.mutable_metadata())["waiting"] = "9";
  (*info.mutable_metadata())["limit"] = "8";
  Attach(info, &status);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500000000);
  Attach(retry, &status);
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("model");
  resource.set_resource_name("en-de");
  Attach(resource, &status);
  EXPECT_EQ(ErrorText(status),
            "RESOURCE_EXHAUSTED: busy\n"
            "  model \"en-de\"\n"
            "  retry after 1.5 s\n"
            "  reason ADMISSION limit=8 waiting=9");
}

TEST(ErrorTextTest, OmitsUnreadableDetail) {
  absl::Status status = absl::InternalError("oops");
  status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo", absl::Cord("\xFF\xFF"));
  status.SetPayload("type.googleapis.com/some.other.Detail", absl::Cord("x"));
  EXPECT_EQ(ErrorText(status), "INTERNAL: oops");
}

}  // namespace
}  // namespace linnet::client
