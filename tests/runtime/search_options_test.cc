#include <limits>

#include "gmock/gmock.h"
#include "model/runtime/search/search_options.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr SearchLimits kLimits = {.max_beam_size = 8, .max_target_tokens = 100};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

SearchOptions Fine() { return {.beam_size = 5, .max_target_tokens = 100, .n_best = 2}; }

template <typename T>
absl::Status With(T SearchOptions::*option, T value) {
  SearchOptions options = Fine();
  options.*option = value;
  return CheckOptions(options, kLimits);
}

auto Refusal(const char* option, const char* value, const char* limit) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(option), HasSubstr(value), HasSubstr(limit)));
}

TEST(CheckOptionsTest, AcceptsEdgesOfEachRange) {
  EXPECT_THAT(CheckOptions(Fine(), kLimits), IsOk());
  EXPECT_THAT(With(&SearchOptions::beam_size, 8), IsOk());
  EXPECT_THAT(With(&SearchOptions::length_penalty, 0.0f), IsOk());
  EXPECT_THAT(With(&SearchOptions::length_penalty, 10.0f), IsOk());
  EXPECT_THAT(With(&SearchOptions::min_target_tokens, 0), IsOk());
  EXPECT_THAT(With(&SearchOptions::min_target_tokens, 100), IsOk());
  EXPECT_THAT(With(&SearchOptions::n_best, 5), IsOk());
  EXPECT_THAT(With(&SearchOptions::unknown_penalty, -3.0f), IsOk());
  EXPECT_THAT(With(&SearchOptions::top_k, 1 << 30), IsOk());
  EXPECT_THAT(With(&SearchOptions::top_p, 1e-30f), IsOk());
  EXPECT_THAT(With(&SearchOptions::top_p, 1.0f), IsOk());
}

TEST(CheckOptionsTest, RefusalNamesOptionValueAndLimit) {
  EXPECT_THAT(With(&SearchOptions::beam_size, 9), Refusal("beam_size", "9", "8"));
  EXPECT_THAT(With(&SearchOptions::beam_size, 0), Refusal("beam_size", "0", "1"));
  EXPECT_THAT(With(&SearchOptions::length_penalty, -0.5f), Refusal("length_penalty", "-0.5", "0"));
  EXPECT_THAT(With(&SearchOptions::length_penalty, 10.5f), Refusal("length_penalty", "10.5", "10"));
  EXPECT_THAT(With(&SearchOptions::min_target_tokens, -1), Refusal("min_target_tokens", "-1", "0"));
  EXPECT_THAT(With(&SearchOptions::min_target_tokens, 101),
              Refusal("min_target_tokens", "101", "100"));
  EXPECT_THAT(With(&SearchOptions::max_target_tokens, 101),
              Refusal("max_target_tokens", "101", "100"));
  EXPECT_THAT(With(&SearchOptions::max_target_tokens, -1), Refusal("max_target_tokens", "-1", "0"));
  EXPECT_THAT(With(&SearchOptions::n_best, 6), Refusal("n_best", "6", "5"));
  EXPECT_THAT(With(&SearchOptions::n_best, 0), Refusal("n_best", "0", "1"));
  EXPECT_THAT(With(&SearchOptions::no_repeat_ngram_size, -1),
              Refusal("no_repeat_ngram_size", "-1", "0"));
  EXPECT_THAT(With(&SearchOptions::temperature, 0.0f), Refusal("temperature", "0", "1e-06"));
  EXPECT_THAT(With(&SearchOptions::top_k, -1), Refusal("top_k", "-1", "0"));
  EXPECT_THAT(With(&SearchOptions::top_p, 0.0f), Refusal("top_p", "0", "1"));
  EXPECT_THAT(With(&SearchOptions::top_p, 1.5f), Refusal("top_p", "1.5", "1"));
}

TEST(CheckOptionsTest, RefusesNaN) {
  for (float value : {kNaN, kInfinity, -kInfinity}) {
    EXPECT_THAT(With(&SearchOptions::length_penalty, value),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(With(&SearchOptions::top_p, value), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(With(&SearchOptions::unknown_penalty, value),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(With(&SearchOptions::temperature, value),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(SearchOptionsTest, SamplesOnlyWithSamplingParameters) {
  EXPECT_FALSE(SearchOptions{}.sampling());
  EXPECT_FALSE(SearchOptions{.temperature = 0.5f}.sampling()) << "a temperature is a beam's too";
  EXPECT_TRUE(SearchOptions{.top_k = 1}.sampling());
  EXPECT_TRUE(SearchOptions{.top_p = 0.99f}.sampling());
  EXPECT_TRUE(SearchOptions{.seed = 0}.sampling());
}

}  // namespace
}  // namespace linnet::model
