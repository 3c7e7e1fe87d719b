#include "server/base/errors.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "tests/support/places.h"
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

TEST(ErrorsTest, BadFieldNamesTheFieldInMessageAndDetails) {
  const absl::Status status =
      BadField("contents[3]", Reason::kEmpty, "text is empty", {{"index", "3"}});
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

TEST(ErrorsTest, EveryErrorHasExactlyOneErrorInfo) {
  for (const absl::Status& status :
       {BadField("f", Reason::kEmpty, "m"), NoSuchModel("x", "m"),
        Busy(Reason::kTooMuchWork, "m", absl::Seconds(1)), ShuttingDown(),
        WithErrorInfo(absl::InternalError("m")), WithErrorInfo(WithErrorInfo(ShuttingDown()))}) {
    EXPECT_EQ(Details<google::rpc::ErrorInfo>(status).size(), 1) << status;
    EXPECT_EQ(ToProto(status).code(), static_cast<int>(status.code()));
  }
  EXPECT_THAT(WithErrorInfo(absl::OkStatus()), IsOk());
}

TEST(ErrorsTest, NoSuchModelHasResourceInfo) {
  const auto resources =
      Details<google::rpc::ResourceInfo>(NoSuchModel("en-xx", "no model \"en-xx\""));
  ASSERT_EQ(resources.size(), 1);
  EXPECT_EQ(resources[0].resource_type(), "linnet.v1.Model");
  EXPECT_EQ(resources[0].resource_name(), "en-xx");
}

TEST(ErrorsTest, RetryDelaySurvivesConversion) {
  EXPECT_EQ(RetryDelay(Busy(Reason::kTooMuchWork, "m", absl::Milliseconds(1250))),
            absl::Milliseconds(1250));
  EXPECT_EQ(RetryDelay(absl::InternalError("m")), absl::InfiniteDuration());
}

TEST(ErrorsTest, AtFieldChangesOnlyInvalidArgument) {
  EXPECT_THAT(AtField("contents[0]", Reason::kUnreadableText,
                      absl::InvalidArgumentError("byte 3 is wrong")),
              StatusIs(absl::StatusCode::kInvalidArgument, "contents[0]: byte 3 is wrong"));
  EXPECT_EQ(AtField("contents[0]", Reason::kUnreadableText, absl::InternalError("m")),
            absl::InternalError("m"));
}

TEST(ErrorsTest, BusyNamesTheQuotaAndTheDelay) {
  const absl::Status status =
      Busy(Reason::kTooMuchWork, "too much", absl::Seconds(2), {}, "client:7");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const auto quota = Details<google::rpc::QuotaFailure>(status);
  ASSERT_EQ(quota.size(), 1);
  EXPECT_EQ(quota[0].violations(0).subject(), "client:7");
  EXPECT_EQ(Details<google::rpc::RetryInfo>(status).size(), 1);
}

TEST(ErrorsTest, RenamedChangesThePathInMessageAndDetails) {
  const absl::Status status = Renamed(
      "", "request.", BadField("options.beam_size", Reason::kBadOption, "is 0", {{"a", "b"}}));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, "request.options.beam_size: is 0"));
  EXPECT_EQ(Details<google::rpc::BadRequest>(status)[0].field_violations(0).field(),
            "request.options.beam_size");
  const auto info = Details<google::rpc::ErrorInfo>(status)[0];
  EXPECT_EQ(info.metadata().at("field"), "request.options.beam_size");
  EXPECT_EQ(info.metadata().at("a"), "b");
  EXPECT_EQ(info.reason(), "BAD_OPTION");
  EXPECT_THAT(Renamed("contents[0]", "text", BadField("contents[0]", Reason::kEmpty, "m")),
              StatusIs(absl::StatusCode::kInvalidArgument, "text: m"));
  for (const absl::Status& other : {ShuttingDown(), BadField("model", Reason::kEmpty, "m")})
    EXPECT_EQ(Renamed("contents[0]", "text", other), other);
}

TEST(ErrorsTest, WithRequestIdAddsRequestInfo) {
  const auto request = Details<google::rpc::RequestInfo>(WithRequestId("abc", ShuttingDown()));
  ASSERT_EQ(request.size(), 1);
  EXPECT_EQ(request[0].request_id(), "abc");
  EXPECT_THAT(WithRequestId("abc", absl::OkStatus()), IsOk());
}

TEST(ErrorsTest, HidesTheCauseOfAnInternalError) {
  EXPECT_EQ(ToProto(absl::InternalError("secret")).message().find("secret"), std::string::npos);
  EXPECT_EQ(ToProto(absl::CancelledError("why")).message(), "why");
}

TEST(ErrorTableTest, EachReasonHasARowAndAUniqueName) {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < ErrorTable().size(); ++i) {
    const ErrorCondition& row = ErrorTable()[i];
    EXPECT_EQ(static_cast<size_t>(row.reason), i) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_LE(row.name.size(), 63);
    EXPECT_TRUE(std::all_of(row.name.begin(), row.name.end(), [](char c) {
      return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
    })) << row.name;
    EXPECT_FALSE(row.meaning.empty());
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Reason::kInternal) + 1);
}

TEST(ErrorTableTest, ErrorsHaveTheCodeAndDetailOfTheirRow) {
  for (const ErrorCondition& row : ErrorTable()) {
    absl::Status status;
    switch (row.detail) {
      case Detail::kBadRequest:
        status = BadField("f", row.reason, "m");
        EXPECT_EQ(Details<google::rpc::BadRequest>(status).size(), 1);
        break;
      case Detail::kResourceInfo:
        status = NoSuchModel("n", "m");
        EXPECT_EQ(Details<google::rpc::ResourceInfo>(status).size(), 1);
        break;
      case Detail::kRetryInfo:
        status = row.reason == Reason::kEngineDown ? EngineDown(absl::Seconds(1)) : ShuttingDown();
        EXPECT_EQ(Details<google::rpc::RetryInfo>(status).size(), 1);
        break;
      case Detail::kRetryInfoAndQuotaFailure:
        status = Busy(row.reason, "m", absl::Seconds(1));
        EXPECT_EQ(Details<google::rpc::RetryInfo>(status).size(), 1);
        EXPECT_EQ(Details<google::rpc::QuotaFailure>(status).size(), 1);
        break;
      case Detail::kNone:
        status = row.reason == Reason::kDeadlineTooClose   ? DeadlineTooClose("m", {})
                 : row.reason == Reason::kDeadlineTooShort ? DeadlineTooShort("m", {})
                 : row.reason == Reason::kRegistryUnreadable
                     ? RegistryUnreadable(absl::NotFoundError("m"))
                 : row.reason == Reason::kModelNotLoaded
                     ? ModelNotLoaded("f", absl::NotFoundError("m"))
                     : WithErrorInfo(absl::Status(row.code, "m"));
        break;
    }
    EXPECT_EQ(status.code(), row.code) << row.name;
    EXPECT_EQ(ErrorReason(status), row.name);
  }
}

// The error table in the format of docs/ERRORS.md.
std::string TableForPeople() {
  const auto details = [](Detail detail) -> absl::string_view {
    switch (detail) {
      case Detail::kBadRequest:
        return "BadRequest";
      case Detail::kResourceInfo:
        return "ResourceInfo";
      case Detail::kRetryInfo:
        return "RetryInfo";
      case Detail::kRetryInfoAndQuotaFailure:
        return "RetryInfo, QuotaFailure";
      case Detail::kNone:
        return "";
    }
    return "";
  };
  std::string table = "| reason | code | details | when, and what to do |\n|---|---|---|---|\n";
  for (const ErrorCondition& row : ErrorTable()) {
    absl::StrAppend(&table, "| ", row.name, " | ", absl::StatusCodeToString(row.code), " | ",
                    details(row.detail), " | ", row.meaning, " |\n");
  }
  return table;
}

TEST(ErrorTableTest, DocumentationShowsTheTable) {
  std::ifstream stream(SourceDir() / "docs/ERRORS.md");
  const std::string page((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_THAT(page, testing::HasSubstr(TableForPeople())) << "put this in its place:\n"
                                                          << TableForPeople();
}

}  // namespace
}  // namespace linnet::server
