#include "proto/status_macros.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace linnet {
namespace {

absl::Status Twice(const absl::Status& status, int* evaluations, bool* went_on) {
  RETURN_IF_ERROR((++*evaluations, status));
  RETURN_IF_ERROR((++*evaluations, status));
  *went_on = true;
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, EvaluatesOnceAndGoesOnAfterOk) {
  int evaluations = 0;
  bool went_on = false;
  EXPECT_EQ(Twice(absl::OkStatus(), &evaluations, &went_on), absl::OkStatus());
  EXPECT_EQ(evaluations, 2);
  EXPECT_TRUE(went_on);
}

TEST(ReturnIfErrorTest, ReturnsTheFirstError) {
  int evaluations = 0;
  bool went_on = false;
  EXPECT_EQ(Twice(absl::NotFoundError("no such model"), &evaluations, &went_on),
            absl::NotFoundError("no such model"));
  EXPECT_EQ(evaluations, 1);
  EXPECT_FALSE(went_on);
}

// The body of an if without braces, followed by an else: the else belongs to the outer if.
absl::StatusOr<std::string> Branch(bool first, const absl::Status& status) {
  if (first)
    RETURN_IF_ERROR(status);
  else
    return "else";
  return "end";
}

TEST(ReturnIfErrorTest, IsOneStatementInAFunctionReturningStatusOr) {
  EXPECT_EQ(*Branch(true, absl::OkStatus()), "end");
  EXPECT_EQ(*Branch(false, absl::OkStatus()), "else");
  EXPECT_EQ(Branch(true, absl::InternalError("x")).status(), absl::InternalError("x"));
}

// Commas outside of brackets, a lambda that uses the macros itself, and names that they might use.
absl::StatusOr<std::pair<int, int>> Nested(const absl::StatusOr<int>& number) {
  absl::Status status = absl::OkStatus();
  RETURN_IF_ERROR([&]() -> absl::Status {
    RETURN_IF_ERROR(status);
    ASSIGN_OR_RETURN(status, absl::StatusOr<absl::Status>(number.status()));
    return absl::OkStatus();
  }());
  ASSIGN_OR_RETURN(const int result, number);
  ASSIGN_OR_RETURN(const auto both, absl::StatusOr<std::pair<int, int>>({result, result + 1}));
  return both;
}

TEST(AssignOrReturnTest, NestsAndTakesArgumentsWithCommas) {
  EXPECT_EQ(*Nested(3), std::pair(3, 4));
  EXPECT_EQ(Nested(absl::NotFoundError("x")).status(), absl::NotFoundError("x"));
}

absl::Status Fill(absl::StatusOr<std::unique_ptr<int>> source,
                  std::vector<std::unique_ptr<int>>* to) {
  ASSIGN_OR_RETURN(to->emplace_back(), std::move(source));
  return absl::OkStatus();
}

TEST(AssignOrReturnTest, MovesTheValueIntoAVariable) {
  std::vector<std::unique_ptr<int>> to;
  ASSERT_EQ(Fill(std::make_unique<int>(5), &to), absl::OkStatus());
  EXPECT_EQ(*to.at(0), 5);
}

TEST(AssignOrReturnTest, EvaluatesTheLeftSideOnlyAfterOk) {
  std::vector<std::unique_ptr<int>> to;
  EXPECT_EQ(Fill(absl::InternalError("x"), &to), absl::InternalError("x"));
  EXPECT_TRUE(to.empty());
}

// A named source stays whole, and a reference on the left side refers to a value that lives on.
absl::StatusOr<std::string> Referred(const absl::StatusOr<std::string>& source) {
  ASSIGN_OR_RETURN(const std::string& value, source);
  return value + *source;
}

TEST(AssignOrReturnTest, KeepsTheSourceAndWhatAReferenceRefersTo) {
  EXPECT_EQ(*Referred(std::string(40, 'a')), std::string(80, 'a'));
}

}  // namespace
}  // namespace linnet
