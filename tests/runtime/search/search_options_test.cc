#include <limits>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "linnet/v1/bundle.pb.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/search/search_options.h"
#include "tests/support/changed_option.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

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
  EXPECT_THAT(With(&SearchOptions::max_ngram_repeats, -1), Refusal("max_ngram_repeats", "-1", "0"));
  EXPECT_THAT(With(&SearchOptions::temperature, 0.0f), Refusal("temperature", "0", "0.01"));
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

// The sum of two of them would not be finite.
TEST(CheckOptionsTest, RefusesPenaltiesThatOverflow) {
  EXPECT_THAT(With(&SearchOptions::unknown_penalty, 1e6f), IsOk());
  EXPECT_THAT(With(&SearchOptions::unknown_penalty, -3e38f),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("between -1e+06 and 1e+06")));
}

TEST(SearchOptionsTest, SamplesOnlyWithSamplingParameters) {
  EXPECT_FALSE(SearchOptions{}.sampling());
  EXPECT_FALSE(SearchOptions{.temperature = 0.5f}.sampling()) << "a temperature is a beam's too";
  EXPECT_TRUE(SearchOptions{.top_k = 1}.sampling());
  EXPECT_TRUE(SearchOptions{.top_p = 0.99f}.sampling());
  EXPECT_TRUE(SearchOptions{.seed = 0}.sampling());
}

// Options none of which has its default.
SearchOptions AllChanged() {
  SearchOptions options;
  for (const SearchOption& option : kSearchOptions) test::ChangeOption(option, options);
  return options;
}

TEST(SearchOptionsTest, RequestOfAllOptionsGivesThemBack) {
  EXPECT_EQ(ApplyOverrides({}, AsRequest(AllChanged()), 100), AllChanged());
  EXPECT_EQ(ApplyOverrides(AllChanged(), AsRequest({.seed = 9}), 100), SearchOptions{.seed = 9});
}

using linnet::v1::DecodingOptions;

// The request with one field alone.
DecodingOptions Only(const google::protobuf::FieldDescriptor& field, DecodingOptions options) {
  for (int i = 0; i < field.containing_type()->field_count(); ++i) {
    if (const auto* other = field.containing_type()->field(i); other != &field)
      options.GetReflection()->ClearField(&options, other);
  }
  return options;
}

TEST(SearchOptionsTest, EveryFieldOfDecodingOptionsIsApplied) {
  const DecodingOptions all = AsRequest(AllChanged());
  const auto& message = *DecodingOptions::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    ASSERT_TRUE(all.GetReflection()->HasField(all, &field)) << field.name();
    EXPECT_NE(ApplyOverrides({}, Only(field, all), 100), SearchOptions{}) << field.name();
  }
}

TEST(SearchOptionsTest, DefaultsOfBundleAreDecodingOptions) {
  const auto& options = *DecodingOptions::descriptor();
  const auto& defaults = *linnet::v1::DecodingDefaults::descriptor();
  std::set<std::string> absent;
  for (int i = 0; i < options.field_count(); ++i) absent.insert(options.field(i)->name());
  for (int i = 0; i < defaults.field_count(); ++i) {
    const auto* option = options.FindFieldByName(defaults.field(i)->name());
    if (option == nullptr) {
      EXPECT_EQ(defaults.field(i)->name(), "max_target_ratio") << "depends on the source";
      continue;
    }
    EXPECT_EQ(option->type(), defaults.field(i)->type()) << option->name();
    absent.erase(option->name());
  }
  EXPECT_THAT(absent, UnorderedElementsAre("n_best", "normalize_scores", "temperature", "top_k",
                                           "top_p", "min_p", "seed"))
      << "a new option: give it a default in the bundle, or name it here";
}

}  // namespace
}  // namespace linnet::model
