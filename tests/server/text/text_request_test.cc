#include "server/request/text_request.h"

#include "server/base/errors.h"
#include "server/request/request_bytes.h"
#include "tests/server/text/request_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::TranslateRequest;
using ::testing::HasSubstr;

using TextRequestTest = RequestFixture;

TEST_F(TextRequestTest, AcceptsGoodRequest) {
  const TranslateRequest request = ToGerman({"The dog runs.", " and\tbarks "});
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->model->name(), "en-de");
  EXPECT_TRUE(checked->split);
  EXPECT_EQ(checked->text_bytes, 24);
}

TEST_F(TextRequestTest, RefusesBadTextsWithTheirPaths) {
  ExpectBad(ToGerman({}), "contents", "at least one");
  ExpectBad(ToGerman({"The dog.", ""}), "contents[1]", "text is empty");
  ExpectBad(ToGerman({" \n\t "}), "contents[0]", "only white space");
  ExpectBad(ToGerman({"a", "b", "c", "d"}), "contents", "holds 4 texts, at most 3");
  ExpectBad(ToGerman({std::string(60, 'a'), std::string(60, 'b')}), "contents",
            "holds 120 bytes of text, at most 100");
  ExpectBad(ToGerman({"good", "b\xC3("}), "contents[1]", "byte 1");
}

TEST_F(TextRequestTest, ExplainsBytesThatProtobufRejects) {
  TranslateRequest request = ToGerman({"good", "caf\xE9"});
  const std::string bytes = request.SerializePartialAsString();
  TranslateRequest parsed;
  const absl::Status status = ParseRequest(bytes, parsed);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("byte 3 is not")));
  EXPECT_EQ(Field(status), "contents[1]");
  EXPECT_EQ(Field(ParseRequest("\x12\x02\xFF\xFE", parsed)), "source_language_code");
  EXPECT_THAT(
      ParseRequest("\x0A\xFF", parsed),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a linnet.v1.TranslateRequest")));
  EXPECT_THAT(ParseRequest("", parsed), IsOk()) << "an empty message is a message";
}

TEST_F(TextRequestTest, NamesNestedTextByItsPath) {
  linnet::v1::TranslateDocumentRequest document;
  document.mutable_settings()->set_target_language_code("\xFF");
  EXPECT_EQ(Field(ParseRequest(document.SerializePartialAsString(), document)),
            "settings.target_language_code");
  document.Clear();
  document.add_lines()->set_text("good");
  document.add_lines()->set_text("caf\xE9");
  const absl::Status status = ParseRequest(document.SerializePartialAsString(), document);
  EXPECT_EQ(Field(status), "lines[1].text");
  EXPECT_EQ(ErrorReason(status), "INVALID_UTF8");
}

TEST_F(TextRequestTest, RefusesUnknownFieldsAtAnyDepth) {
  TranslateRequest parsed;
  const absl::Status top = ParseRequest("\x62\x02hi", parsed);  // field 12, reserved
  EXPECT_THAT(top, StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("field 12 of")));
  EXPECT_EQ(Field(top), "request");
  EXPECT_EQ(ErrorReason(top), "UNKNOWN_FIELD");
  const absl::Status inside = ParseRequest(std::string("\x32\x03\xF8\x06\x01", 5), parsed);
  EXPECT_THAT(inside, StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("field 111 of")));
  EXPECT_EQ(Field(inside), "options");
}

TEST_F(TextRequestTest, RefusesRemovedFields) {
  TranslateRequest parsed;
  const std::string with_reranking("\x92\x01\x00", 3);  // field 18, an empty message
  const absl::Status status = ParseRequest(with_reranking, parsed);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("field 18 of linnet.v1.TranslateRequest was removed from "
                                         "the API, see CHANGELOG.md")));
  EXPECT_EQ(ErrorReason(status), "UNKNOWN_FIELD");
}

TEST_F(TextRequestTest, RefusesOtherMimeTypes) {
  TranslateRequest request = ToGerman({"The dog runs."});
  for (const char* plain : {"", "text/plain", "TEXT/Plain", "text/html", "application/xml"}) {
    request.set_mime_type(plain);
    EXPECT_THAT(Check(request), IsOk());
  }
  request.set_mime_type("text/rtf");
  const absl::Status status = Check(request);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("\"text/rtf\" is not supported: send text/plain, ")));
  EXPECT_EQ(Field(status), "mime_type");
}

TEST_F(TextRequestTest, ChecksProtectedPatterns) {
  const auto refused = [&](const std::vector<std::string>& patterns, const std::string& field,
                           const std::string& message) {
    TranslateRequest request = ToGerman({"The dog runs."});
    request.mutable_protected_patterns()->Assign(patterns.begin(), patterns.end());
    const absl::Status status = Check(request);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_EQ(ErrorReason(status), "BAD_SETTING");
    EXPECT_EQ(Field(status), field);
  };
  refused({"a", ""}, "protected_patterns[1]", "is empty");
  refused({"[a"}, "protected_patterns[0]", "is no regular expression of RE2: missing ]: [a");
  refused({"(?=a)"}, "protected_patterns[0]", "has neither look-around");
  refused({std::string(257, 'a')}, "protected_patterns[0]", "has 257 bytes, at most 256");
  refused(std::vector<std::string>(17, "a"), "protected_patterns", "holds 17 patterns, at most 16");
  refused({"a", "\\pL{8}"}, "protected_patterns[1]", "may have 4096 instructions");
  refused({"\\pL{100}"}, "protected_patterns[0]", "may have 4096 instructions");
  refused(std::vector<std::string>(4, "\\pL"), "protected_patterns[3]", "is too large");
  TranslateRequest request = ToGerman({"The dog runs."});
  for (int i = 0; i < 16; ++i) request.add_protected_patterns("(?P<name>\\bx[0-9]{1,20})|\\Qa(b");
  EXPECT_THAT(Check(request), IsOk());
}

TEST_F(TextRequestTest, ChecksMarkupOptions) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.mutable_markup()->set_attributes(true);
  EXPECT_THAT(Check(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("markup: is set, and the texts are plain")));
  request.set_mime_type("application/xml");
  request.mutable_markup()->add_ignore_tags("x:\u00E4");
  EXPECT_THAT(Check(request), IsOk());
  for (const std::string& name : {std::string(), std::string("a b"), std::string(65, 'a')}) {
    TranslateRequest wrong = request;
    wrong.mutable_markup()->add_splitting_tags("p");
    wrong.mutable_markup()->add_splitting_tags(name);
    EXPECT_THAT(Check(wrong), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("is no name of an element: write 1 to 64 bytes")));
    EXPECT_EQ(Field(Check(wrong)), "markup.splitting_tags[1]");
  }
  for (int i = 0; i < 65; ++i) request.mutable_markup()->add_non_splitting_tags("a");
  EXPECT_EQ(Field(Check(request)), "markup.non_splitting_tags");
}

TEST_F(TextRequestTest, ChecksLabels) {
  TranslateRequest request = ToGerman({"The dog runs."});
  (*request.mutable_labels())["team"] = "search-7";
  (*request.mutable_labels())["empty"] = "";
  EXPECT_THAT(Check(request), IsOk());
  (*request.mutable_labels())["Team"] = "a";
  ExpectBad(request, "labels", "lower-case letters");
  request.clear_labels();
  (*request.mutable_labels())["team"] = std::string(64, 'a');
  ExpectBad(request, "labels", "1 to 63");
  request.clear_labels();
  for (int i = 0; i < 17; ++i) (*request.mutable_labels())[absl::StrCat("k", i)] = "v";
  ExpectBad(request, "labels", "holds 17 labels, at most 16");
}

TEST_F(TextRequestTest, ChecksPriority) {
  TranslateRequest request = ToGerman({"The dog runs."});
  EXPECT_FALSE(CheckRequest(request, *fixture.catalog, limits)->priority.has_value());
  for (const auto& [said, meant] :
       {std::pair(linnet::v1::PRIORITY_BATCH, Priority::kBatch),
        std::pair(linnet::v1::PRIORITY_NORMAL, Priority::kNormal),
        std::pair(linnet::v1::PRIORITY_INTERACTIVE, Priority::kInteractive)}) {
    request.set_priority(said);
    EXPECT_EQ(CheckRequest(request, *fixture.catalog, limits)->priority, meant);
  }
  request.set_priority(static_cast<linnet::v1::Priority>(9));
  ExpectBad(request, "priority", "is 9, which this server does not know");
}

TEST_F(TextRequestTest, DetectsUnsetLanguage) {
  TranslateRequest request = ToGerman({"The dog runs across the street."});
  request.clear_source_language_code();
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->model->name(), "en-de");
  EXPECT_EQ(checked->detected->language_code(), "en");
  EXPECT_GT(checked->detected->confidence(), 0.5);
  SummarizeRequest summary = SummaryOf("The dog runs across the street.");
  summary.clear_language_code();
  EXPECT_THAT(Check(summary), IsOk());
}

TEST_F(TextRequestTest, UsesTheOnlyLanguageIfUndetected) {
  TranslateRequest request = ToGerman({"12345"});
  request.clear_source_language_code();
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->model->name(), "en-de");
  EXPECT_FALSE(checked->detected.has_value()) << "nobody knows what it is in";
  SummarizeRequest summary = SummaryOf("12345");
  summary.clear_language_code();
  EXPECT_THAT(Check(summary), IsOk());
  linnet::v1::ScoreRequest score;
  score.set_target_language_code("de");
  score.add_pairs()->set_source_text("Hello.");
  score.mutable_pairs(0)->set_target_text("Hallo.");
  auto scored = CheckRequest(score, *fixture.catalog, limits);
  ASSERT_THAT(scored, IsOk());
  EXPECT_EQ(scored->model->name(), "en-de");
}

TEST_F(TextRequestTest, NamesLanguageWithoutModel) {
  TranslateRequest request = ToGerman({"Bonjour, comment allez-vous aujourd'hui ?"});
  request.clear_source_language_code();
  EXPECT_THAT(Check(request),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("seems to be in \"fr\": no model translates fr to de")));
  for (const char* text : {"Hello.", "The dog runs across the street."}) {
    *request.mutable_contents(0) = text;
    request.set_target_language_code("tlh");
    EXPECT_THAT(Check(request), StatusIs(absl::StatusCode::kNotFound,
                                         "no model translates to tlh: there is en to de"));
    EXPECT_THAT(CheckSettings(request, *fixture.catalog, limits),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("no model translates to tlh")))
        << "of a document before its first line";
  }
}

TEST_F(TextRequestTest, NamedModelWithoutTheDetectedLanguageNamesIt) {
  auto many = test::TinyManifest("many", linnet::v1::TASK_TRANSLATE, "en", "de");
  for (const char* source : {"en", "nb"}) {
    auto& pair = *many.add_languages();
    pair.set_source_language_code(source);
    pair.set_target_language_code("de");
  }
  test::WriteBundle(fixture.folder.path() / "many", many);
  ASSERT_TRUE(fixture.catalog->Reload().ok());
  TranslateRequest request = ToGerman({"Bonjour, comment allez-vous aujourd'hui ?"});
  request.clear_source_language_code();
  request.set_model("many");
  ExpectBad(request, "model",
            "(source_language_code is not set and the text seems to be in \"fr\")");
  *request.mutable_contents(0) = "Hvordan har du det i dag, og hva skal vi gjøre i morgen?";
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->detected->language_code(), "nb") << "CLD2 knows one Norwegian";
  EXPECT_EQ(checked->language_code, "nb");
}

TEST_F(TextRequestTest, LanguageOfTextSelectsTheModel) {
  test::WriteBundle(fixture.folder.path() / "fr-de",
                    test::TinyManifest("fr-de", linnet::v1::TASK_TRANSLATE, "fr", "de"));
  ASSERT_TRUE(fixture.catalog->Reload().ok());
  TranslateRequest request = ToGerman({"Bonjour, comment allez-vous aujourd'hui ?"});
  request.clear_source_language_code();
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->model->name(), "fr-de");
  EXPECT_EQ(checked->detected->language_code(), "fr");
  *request.mutable_contents(0) = "12345";
  ExpectBad(request, "source_language_code", "set it to one of en, fr, or name a model");
}

TEST_F(TextRequestTest, NamedModelSetsTheLanguage) {
  TranslateRequest request = ToGerman({"12345"});
  request.clear_source_language_code();
  request.set_model("en-de");
  auto checked = CheckRequest(request, *fixture.catalog, limits);
  ASSERT_THAT(checked, IsOk());
  EXPECT_FALSE(checked->detected.has_value());
}

TEST_F(TextRequestTest, RefusesUnknownLongInput) {
  SummarizeRequest request = SummaryOf("The dog runs.");
  request.set_long_input(static_cast<linnet::v1::LongInput>(9));
  ExpectBad(request, "long_input", "is 9");
}

TEST_F(TextRequestTest, MatchesLanguageTagOrPrimarySubtag) {
  TranslateRequest request = ToGerman({"The dog runs."});
  for (auto [source, target] :
       {std::pair{"en", "de"}, {"EN", "De"}, {"en-US", "de-AT"}, {"en-Latn-GB", "de"}}) {
    request.set_source_language_code(source);
    request.set_target_language_code(target);
    EXPECT_THAT(Check(request), IsOk()) << source << " to " << target;
  }
}

TEST_F(TextRequestTest, NotFoundListsLanguagesAndModels) {
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

TEST_F(TextRequestTest, QuotesLongNamesCutAndInAscii) {
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

TEST_F(TextRequestTest, RefusesInvalidLanguageCodes) {
  for (const char* tag :
       {"e", "german language", "de__DE", "-de", "de-", "12", "de-123456789", "d\xC3\xA9"}) {
    TranslateRequest request = ToGerman({"The dog runs."});
    request.set_target_language_code(tag);
    ExpectBad(request, "target_language_code", "is no language code");
    request = ToGerman({"The dog runs."});
    request.set_source_language_code(tag);
    ExpectBad(request, "source_language_code", "is no language code");
  }
}

TEST_F(TextRequestTest, TargetLanguageIsRequired) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_model("en-de");
  request.clear_target_language_code();
  ExpectBad(request, "target_language_code", "required");
}

TEST_F(TextRequestTest, RefusesModelOfOtherTaskOrPair) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_model("en-summary");
  ExpectBad(request, "model", "\"en-summary\" summarises: name one that translates");
  request = ToGerman({"The dog runs."});
  request.set_model("en-de");
  request.set_target_language_code("fr");
  ExpectBad(request, "model", "\"en-de\" translates en to de: ask for that");
}

}  // namespace
}  // namespace linnet::server
