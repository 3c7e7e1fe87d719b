// GoogleMock matchers for absl::Status and absl::StatusOr:
//
//   EXPECT_THAT(bundle.Validate(), IsOk());
//   EXPECT_THAT(Parse("7"), IsOkAndHolds(7));
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"x\"")));
//
// A mismatch prints the actual status. They are in the namespace `linnet`, so that tests in its
// nested namespaces need no using-declaration; a linnet::testing would hide ::testing.
#pragma once

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace linnet {
namespace status_matchers_internal {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Keeps the matcher of the value untyped: the type of the StatusOr is known only at its use.
template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename Result>  // const absl::StatusOr<T>&, absl::StatusOr<T>&& and so on
  operator ::testing::Matcher<Result>() const {
    return ::testing::Matcher<Result>(new Typed<Result>(inner_));
  }

 private:
  template <typename Result>
  class Typed : public ::testing::MatcherInterface<Result> {
   public:
    using Value = typename std::remove_cv_t<std::remove_reference_t<Result>>::value_type;
    explicit Typed(const Inner& inner)
        : matcher_(::testing::SafeMatcherCast<const Value&>(inner)) {}

    bool MatchAndExplain(Result result, ::testing::MatchResultListener* listener) const override {
      if (!result.ok()) {
        *listener << "which has status " << result.status().ToString();
        return false;
      }
      return matcher_.MatchAndExplain(*result, listener);
    }
    void DescribeTo(std::ostream* os) const override {
      *os << "is OK and holds a value that ";
      matcher_.DescribeTo(os);
    }
    void DescribeNegationTo(std::ostream* os) const override {
      *os << "is not OK, or holds a value that ";
      matcher_.DescribeNegationTo(os);
    }

   private:
    ::testing::Matcher<const Value&> matcher_;
  };

  Inner inner_;
};

}  // namespace status_matchers_internal

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  if (!status.ok()) *result_listener << "which has status " << status.ToString();
  return status.ok();
}

MATCHER_P2(StatusIs, code, message,
           std::string(negation ? "has not " : "has ") + "code " + absl::StatusCodeToString(code) +
               " and a message that " +
               ::testing::DescribeMatcher<std::string>(message, /*negation=*/false)) {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << "which has status " << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

inline auto StatusIs(absl::StatusCode code) { return StatusIs(code, ::testing::_); }

// `inner` is a value or a matcher for the value.
template <typename Inner>
status_matchers_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>> IsOkAndHolds(Inner&& inner) {
  return status_matchers_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>>(
      std::forward<Inner>(inner));
}

}  // namespace linnet
