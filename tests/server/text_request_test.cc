#include "server/text_request.h"

#include <limits>

#include "google/rpc/error_details.pb.h"
#include "server/errors.h"
#include "tests/server/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::TranslateRequest;
using ::testing::HasSubstr;

std::string Field(const absl::Status& status) {
  const google::rpc::Status proto = ToProto(status);
  for (const auto& any : proto.details()) {
    google::rpc::BadRequest bad;
    if (any.UnpackTo(&bad)) return bad.field_violations(0).field();
  }
  return "";
}

struct TextRequestTest : ::testing::Test {
  TextHouse house;
  TextLimits limits{.max_contents = 3, .max_text_bytes = 100};

  template <typename Request>
  absl::Status Check(const Request& request) {
    return CheckRequest(request, *house.catalog, limits).status();
  }
  // The request is refused, and the error names the field and says this.
  template <typename Request>
  void ExpectBad(const Request& request, const std::string& field, const std::string& says) {
    const absl::Status status = Check(request);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
    EXPECT_EQ(Field(status), field);
  }
};

TEST_F(TextRequestTest, AGoodRequestComesThroughWithItsModel) {
  const TranslateRequest request = ToGerman({"The dog runs.", " and\tbarks "});
  auto checked = CheckRequest(request, *house.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->model->name(), "en-de");
  EXPECT_TRUE(checked->split);
  EXPECT_EQ(checked->text_bytes, 24);
}

TEST_F(TextRequestTest, TextsThatAreNoneAreNamed) {
  ExpectBad(ToGerman({}), "contents", "at least one");
  ExpectBad(ToGerman({"The dog.", ""}), "contents[1]", "text is empty");
  ExpectBad(ToGerman({" \n\t "}), "contents[0]", "nothing but white space");
  ExpectBad(ToGerman({"a", "b", "c", "d"}), "contents", "holds 4 texts, at most 3");
  ExpectBad(ToGerman({std::string(60, 'a'), std::string(60, 'b')}), "contents",
            "holds 120 bytes of text, at most 100");
  ExpectBad(ToGerman({"good", "b\xC3("}), "contents[1]", "byte 1");
}

TEST_F(TextRequestTest, BytesThatProtobufRefusesAreExplained) {
  TranslateRequest request = ToGerman({"good", "caf\xE9"});
  const std::string bytes = request.SerializePartialAsString();
  TranslateRequest parsed;
  const absl::Status status = ParseRequest(bytes, parsed);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("byte 3 is not")));
  EXPECT_EQ(Field(status), "contents[1]");
  EXPECT_EQ(Field(ParseRequest("\x12\x02\xFF\xFE", parsed)), "source_language_code");
  EXPECT_THAT(
      ParseRequest("\x0A\xFF", parsed),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no linnet.v1.TranslateRequest")));
  EXPECT_THAT(ParseRequest("", parsed), IsOk()) << "an empty message is a message";
}

TEST_F(TextRequestTest, OnlyPlainTextIsSupportedAndTheErrorSaysSo) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_mime_type("text/plain");
  EXPECT_THAT(Check(request), IsOk());
  request.set_mime_type("text/html");
  ExpectBad(request, "mime_type", "\"text/html\" is not supported: there is text/plain");
}

TEST_F(TextRequestTest, LanguagesAreFoundByTheirTagOrTheirPrimarySubtag) {
  TranslateRequest request = ToGerman({"The dog runs."});
  for (auto [source, target] :
       {std::pair{"en", "de"}, {"EN", "De"}, {"en-US", "de-AT"}, {"en-Latn-GB", "de"}}) {
    request.set_source_language_code(source);
    request.set_target_language_code(target);
    EXPECT_THAT(Check(request), IsOk()) << source << " to " << target;
  }
}

TEST_F(TextRequestTest, UnknownLanguagesAndModelsAreNotFoundWithTheListOfWhatThereIs) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_target_language_code("fr");
  EXPECT_THAT(Check(request), StatusIs(absl::StatusCode::kNotFound,
                                       "no model translates en to fr: there is en to de"));
  request.set_model("en-fr");
  EXPECT_THAT(Check(request), StatusIs(absl::StatusCode::kNotFound,
                                       "no model \"en-fr\": there is en-de, en-summary"));
  SummarizeRequest summary = SummaryOf("The dog runs.");
  summary.set_language_code("de");
  EXPECT_THAT(Check(summary),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no model summarises de")));
}

TEST_F(TextRequestTest, LongNamesComeBackCutAndInPlainAscii) {
  std::string name = "x";
  for (int i = 0; i < 5000; ++i) name += "\xC3\xA9";  // a cut after 80 bytes splits one of these
  const auto expect_plain = [](const absl::Status& status) {
    const std::string reply = ToProto(status).SerializeAsString();
    EXPECT_LT(reply.size(), 2000);
    EXPECT_TRUE(google::rpc::Status().ParseFromString(reply)) << "there is text that is not UTF-8";
    EXPECT_THAT(std::string(status.message()), HasSubstr("\\xc3"));
  };
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_model(name);
  expect_plain(Check(request));
  request = ToGerman({"The dog runs."});
  request.set_target_language_code(name);
  expect_plain(Check(request));
  request = ToGerman({"The dog runs."});
  request.set_mime_type(name);
  expect_plain(Check(request));
}

TEST_F(TextRequestTest, LanguageCodesThatAreNoneAreTheCallersToChange) {
  for (const char* tag :
       {"e", "german language", "de_DE", "-de", "de-", "12", "de-123456789", "d\xC3\xA9"}) {
    TranslateRequest request = ToGerman({"The dog runs."});
    request.set_target_language_code(tag);
    ExpectBad(request, "target_language_code", "is no language code");
    request = ToGerman({"The dog runs."});
    request.set_source_language_code(tag);
    ExpectBad(request, "source_language_code", "is no language code");
  }
}

TEST_F(TextRequestTest, LanguagesAreRequiredUnlessTheModelSaysThem) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.clear_source_language_code();
  ExpectBad(request, "source_language_code", "required");
  request.set_model("en-de");
  EXPECT_THAT(Check(request), IsOk());
  request.clear_target_language_code();
  ExpectBad(request, "target_language_code", "required");
  SummarizeRequest summary = SummaryOf("The dog runs.");
  summary.clear_language_code();
  ExpectBad(summary, "language_code", "required");
}

TEST_F(TextRequestTest, AModelOfAnotherTaskOrPairIsNotTakenInSilence) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_model("en-summary");
  ExpectBad(request, "model", "\"en-summary\" summarises: name one that translates");
  request = ToGerman({"The dog runs."});
  request.set_model("en-de");
  request.set_target_language_code("fr");
  ExpectBad(request, "model", "\"en-de\" translates en to de: ask for that");
}

struct BadOption {
  const char* name;
  std::function<void(linnet::v1::DecodingOptions&)> set;
};
class BadOptionTest : public TextRequestTest, public ::testing::WithParamInterface<BadOption> {};

TEST_P(BadOptionTest, IsRefusedByName) {
  TranslateRequest request = ToGerman({"The dog runs."});
  GetParam().set(*request.mutable_options());
  const std::string path = absl::StrCat("options.", GetParam().name);
  ExpectBad(request, path, absl::StrCat(path, ": is "));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kHuge = std::numeric_limits<int32_t>::max();

INSTANTIATE_TEST_SUITE_P(
    All, BadOptionTest,
    ::testing::Values(
        BadOption{"beam_size", [](auto& o) { o.set_beam_size(0); }},
        BadOption{"beam_size", [](auto& o) { o.set_beam_size(-1); }},
        BadOption{"beam_size", [](auto& o) { o.set_beam_size(kHuge); }},
        BadOption{"n_best", [](auto& o) { o.set_n_best(0); }},
        BadOption{"n_best",
                  [](auto& o) {
                    o.set_beam_size(2);
                    o.set_n_best(3);
                  }},
        BadOption{"length_penalty", [](auto& o) { o.set_length_penalty(kNan); }},
        BadOption{"length_penalty", [](auto& o) { o.set_length_penalty(-1); }},
        BadOption{"length_penalty", [](auto& o) { o.set_length_penalty(1e30f); }},
        BadOption{"min_target_tokens", [](auto& o) { o.set_min_target_tokens(-1); }},
        BadOption{"min_target_tokens", [](auto& o) { o.set_min_target_tokens(81); }},
        BadOption{"min_target_tokens",
                  [](auto& o) {
                    o.set_min_target_tokens(9);
                    o.set_max_target_tokens(8);
                  }},
        BadOption{"max_target_tokens", [](auto& o) { o.set_max_target_tokens(-5); }},
        BadOption{"max_target_tokens", [](auto& o) { o.set_max_target_tokens(81); }},
        BadOption{"unknown_penalty", [](auto& o) { o.set_unknown_penalty(kInfinity); }},
        BadOption{"no_repeat_ngram_size", [](auto& o) { o.set_no_repeat_ngram_size(-1); }},
        BadOption{"temperature", [](auto& o) { o.set_temperature(0); }},
        BadOption{"temperature", [](auto& o) { o.set_temperature(-1); }},
        BadOption{"temperature", [](auto& o) { o.set_temperature(kNan); }}));

TEST_F(TextRequestTest, BoundsOfASummaryAreTheBoundsOfItsOptions) {
  SummarizeRequest request = SummaryOf("The dog runs.");
  request.set_min_summary_tokens(5);
  request.set_max_summary_tokens(9);
  auto checked = CheckRequest(request, *house.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  const model::SearchOptions options = MergeOptions(checked->model->bundle, checked->options, 10);
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

TEST_F(TextRequestTest, ADefaultBoundGivesWayToTheRequestsOther) {
  const model::Bundle& bundle =
      house.catalog->models()[0]->bundle;  // at most tokens + 10, at least 1
  linnet::v1::DecodingOptions options;
  options.set_min_target_tokens(40);
  EXPECT_EQ(MergeOptions(bundle, options, 5).max_target_tokens, 40);
  options.Clear();
  options.set_max_target_tokens(0);
  EXPECT_EQ(MergeOptions(bundle, options, 5).min_target_tokens, 0);
  options.Clear();
  EXPECT_EQ(MergeOptions(bundle, options, 5).max_target_tokens, 15);
}

}  // namespace
}  // namespace linnet::server
