#include "server/request/decoding_options.h"

#include <functional>
#include <limits>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "tests/server/text/request_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::TranslateRequest;

using DecodingOptionsTest = RequestFixture;

struct BadOption {
  const char* name;  // of the case
  const char* field;
  std::function<void(linnet::v1::DecodingOptions&)> set;

  friend void PrintTo(const BadOption& option, std::ostream* out) { *out << option.name; }
};
class BadOptionTest : public RequestFixture, public ::testing::WithParamInterface<BadOption> {};

TEST_P(BadOptionTest, IsRefusedWithItsPath) {
  TranslateRequest request = ToGerman({"The dog runs."});
  GetParam().set(*request.mutable_options());
  const std::string path = absl::StrCat("options.", GetParam().field);
  ExpectBad(request, path, absl::StrCat(path, ": is "));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kHuge = std::numeric_limits<int32_t>::max();

INSTANTIATE_TEST_SUITE_P(
    All, BadOptionTest,
    ::testing::Values(
        BadOption{"BeamOfZero", "beam_size", [](auto& o) { o.set_beam_size(0); }},
        BadOption{"BeamBelowZero", "beam_size", [](auto& o) { o.set_beam_size(-1); }},
        BadOption{"BeamBeyondAll", "beam_size", [](auto& o) { o.set_beam_size(kHuge); }},
        BadOption{"NoHypotheses", "n_best", [](auto& o) { o.set_n_best(0); }},
        BadOption{"MoreHypothesesThanTheBeam", "n_best",
                  [](auto& o) {
                    o.set_beam_size(2);
                    o.set_n_best(3);
                  }},
        BadOption{"MoreHypothesesThanAreDrawn", "n_best",
                  [](auto& o) {
                    o.set_seed(1);
                    o.set_beam_size(2);
                    o.set_n_best(3);
                  }},
        BadOption{"LengthPenaltyNotANumber", "length_penalty",
                  [](auto& o) { o.set_length_penalty(kNan); }},
        BadOption{"LengthPenaltyBelowZero", "length_penalty",
                  [](auto& o) { o.set_length_penalty(-1); }},
        BadOption{"LengthPenaltyBeyondAll", "length_penalty",
                  [](auto& o) { o.set_length_penalty(1e30f); }},
        BadOption{"MinimumBelowZero", "min_target_tokens",
                  [](auto& o) { o.set_min_target_tokens(-1); }},
        BadOption{"MinimumBeyondTheModel", "min_target_tokens",
                  [](auto& o) { o.set_min_target_tokens(81); }},
        BadOption{"MinimumAboveTheMaximum", "min_target_tokens",
                  [](auto& o) {
                    o.set_min_target_tokens(9);
                    o.set_max_target_tokens(8);
                  }},
        BadOption{"MaximumBelowZero", "max_target_tokens",
                  [](auto& o) { o.set_max_target_tokens(-5); }},
        BadOption{"MaximumBeyondTheModel", "max_target_tokens",
                  [](auto& o) { o.set_max_target_tokens(81); }},
        BadOption{"UnknownPenaltyInfinite", "unknown_penalty",
                  [](auto& o) { o.set_unknown_penalty(kInfinity); }},
        BadOption{"NGramsBelowZero", "no_repeat_ngram_size",
                  [](auto& o) { o.set_no_repeat_ngram_size(-1); }},
        BadOption{"RepeatsBelowZero", "max_ngram_repeats",
                  [](auto& o) { o.set_max_ngram_repeats(-1); }},
        BadOption{"TemperatureOfZero", "temperature", [](auto& o) { o.set_temperature(0); }},
        BadOption{"TemperatureBelowZero", "temperature", [](auto& o) { o.set_temperature(-1); }},
        BadOption{"TemperatureNotANumber", "temperature", [](auto& o) { o.set_temperature(kNan); }},
        BadOption{"TopKBelowZero", "top_k", [](auto& o) { o.set_top_k(-1); }},
        BadOption{"TopPOfZero", "top_p", [](auto& o) { o.set_top_p(0); }},
        BadOption{"TopPNotANumber", "top_p", [](auto& o) { o.set_top_p(kNan); }}),
    [](const auto& param) { return param.param.name; });

TEST_F(DecodingOptionsTest, SamplingIgnoresDefaultBeam) {
  const model::Bundle& bundle = fixture.catalog->models()[0]->bundle;
  linnet::v1::DecodingOptions options;
  EXPECT_FALSE(ResolvedOptions(bundle, options).ForSource(5).sampling());
  options.set_seed(0);
  EXPECT_TRUE(ResolvedOptions(bundle, options).ForSource(5).sampling());
  EXPECT_EQ(ResolvedOptions(bundle, options).ForSource(5).beam_size, 1);
  options.set_n_best(6);
  EXPECT_EQ(ResolvedOptions(bundle, options).ForSource(5).beam_size, 6);
  options.set_beam_size(8);
  EXPECT_EQ(ResolvedOptions(bundle, options).ForSource(5).beam_size, 8);
  TranslateRequest request = ToGerman({"The dog runs."});
  *request.mutable_options() = options;
  EXPECT_THAT(Check(request), IsOk());
}

TEST_F(DecodingOptionsTest, SummaryBoundsAreAliasesOfOptions) {
  SummarizeRequest request = SummaryOf("The dog runs.");
  request.set_min_summary_tokens(5);
  request.set_max_summary_tokens(9);
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  const model::SearchOptions options = checked->options.ForSource(10);
  EXPECT_EQ(options.min_target_tokens, 5);
  EXPECT_EQ(options.max_target_tokens, 9);
  request.set_min_summary_tokens(10);
  ExpectBad(request, "min_summary_tokens", "max_target_tokens, which is 9");
  request.set_min_summary_tokens(2);
  request.mutable_options()->set_min_target_tokens(2);
  ExpectBad(request, "min_summary_tokens", "set one of them");
  request.mutable_options()->clear_min_target_tokens();
  request.mutable_options()->set_max_target_tokens(9);
  ExpectBad(request, "max_summary_tokens", "set one of them");
}

TEST_F(DecodingOptionsTest, DefaultBoundIsAdjustedToRequest) {
  const model::Bundle& bundle =
      fixture.catalog->models()[0]->bundle;  // at most tokens + 10, at least 1
  linnet::v1::DecodingOptions options;
  options.set_min_target_tokens(40);
  EXPECT_EQ(ResolvedOptions(bundle, options).ForSource(5).max_target_tokens, 40);
  options.Clear();
  options.set_max_target_tokens(0);
  EXPECT_EQ(ResolvedOptions(bundle, options).ForSource(5).min_target_tokens, 0);
  options.Clear();
  EXPECT_EQ(ResolvedOptions(bundle, options).ForSource(5).max_target_tokens, 15);
}

}  // namespace
}  // namespace linnet::server
