// Styles of summaries, from the request to the answer.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/cache/answer_cache.h"
#include "server/text/text_call.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::SummarizeResponse;
using linnet::v1::SUMMARY_STYLE_PARAGRAPH;
using linnet::v1::SUMMARY_STYLE_SENTENCE;
using linnet::v1::SUMMARY_STYLE_TITLE;
using linnet::v1::SummaryStyle;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Ids of tiny.spm that stand for styles here: each is also a piece.
constexpr int kTitle = 30, kSentence = 31, kGerman = 32;

// Engines that record what they decode, behind a cache: "plain" summarises French and has no
// styles, "styled" has two for English and none for German.
struct SummaryStylesTest : ::testing::Test {
  SummaryStylesTest() {
    auto styled = test::TinyManifest("styled", linnet::v1::TASK_SUMMARIZE, "en", "en");
    Add(styled, "en", kTitle).set_style(SUMMARY_STYLE_TITLE);
    Add(styled, "en", kSentence).set_style(SUMMARY_STYLE_SENTENCE);
    Add(styled, "de", kGerman);
    auto& golden = *styled.add_golden_examples();
    golden.set_source_text("The dog runs.");
    golden.set_target_text("anything");
    golden.set_style(SUMMARY_STYLE_SENTENCE);
    test::WriteBundle(folder.path() / "styled", styled);
    test::WriteBundle(folder.path() / "plain",
                      test::TinyManifest("plain", linnet::v1::TASK_SUMMARIZE, "fr", "fr"));
    auto loaded = Catalog::Load(
        folder.path(), [this](const model::Bundle&) { return std::make_unique<Recorder>(seen); },
        {}, metrics, nullptr, /*max_bytes=*/0, {}, /*bundle_keys=*/{}, &cache);
    EXPECT_THAT(loaded, IsOk());
    catalog = *std::move(loaded);
    calls = std::make_unique<TextCalls>(*catalog, admission, pool, metrics);
    of_loading = std::exchange(seen, {});
  }

  static linnet::v1::LanguageTokens& Add(linnet::v1::BundleManifest& manifest,
                                         const std::string& language, int before) {
    auto& entry = *manifest.add_languages();
    entry.set_source_language_code(language);
    entry.set_target_language_code(language);
    entry.add_before_source_ids(before);
    return entry;
  }

  struct Recorder : test::SearchEngine {
    explicit Recorder(std::vector<model::SequenceInput>& seen)
        : SearchEngine(/*vocabulary_size=*/400, kTinyLimits, /*seed=*/3), seen(seen) {}
    absl::Status Add(std::span<const model::SequenceInput> inputs) override {
      seen.insert(seen.end(), inputs.begin(), inputs.end());
      return SearchEngine::Add(inputs);
    }
    std::vector<model::SequenceInput>& seen;
  };

  static SummarizeRequest In(SummaryStyle style, const std::string& text = "The dog runs.") {
    SummarizeRequest request = SummaryOf(text);
    request.set_style(style);
    return request;
  }
  SummarizeResponse Answer(const SummarizeRequest& request) {
    SummarizeResponse response;
    test::Notification done;
    calls->Summarize(request, response, {.arrived = absl::Now()}, [&](const absl::Status& status) {
      EXPECT_THAT(status, IsOk());
      done.Open();
    });
    done.Pass();
    return response;
  }
  void ExpectBad(const SummarizeRequest& request, const std::string& message) {
    const absl::Status status = CheckRequest(request, *catalog, {}).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_EQ(Field(status), "style");
    EXPECT_EQ(ErrorReason(status), "BAD_SETTING");
  }

  test::TemporaryFolder folder;
  std::vector<model::SequenceInput> seen, of_loading;
  Metrics metrics;
  AnswerCache cache{1 << 20, CacheTenant::kShared};
  TextPool pool{2};
  Admission admission{{}, metrics};
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<TextCalls> calls;
};

TEST_F(SummaryStylesTest, RequestChoosesElseTheFirstApplies) {
  const auto ids = [&](const SummarizeRequest& request) {
    const auto checked = CheckRequest(request, *catalog, {});
    EXPECT_THAT(checked, IsOk());
    return std::vector<int>(checked->languages->before_source_ids().begin(),
                            checked->languages->before_source_ids().end());
  };
  EXPECT_THAT(ids(SummaryOf("The dog runs.")), ElementsAre(kTitle));
  EXPECT_THAT(ids(In(SUMMARY_STYLE_TITLE)), ElementsAre(kTitle));
  EXPECT_THAT(ids(In(SUMMARY_STYLE_SENTENCE)), ElementsAre(kSentence));
  SummarizeRequest request = In(SUMMARY_STYLE_SENTENCE);
  request.set_language_code("en-GB");
  EXPECT_THAT(ids(request), ElementsAre(kSentence));
  request.set_language_code("");
  request.set_contents(0, "The dog runs across the long road to the river.");
  EXPECT_THAT(ids(request), ElementsAre(kSentence)) << "of the detected language";
  request = SummaryOf("Der Hund.");
  request.set_language_code("de");
  EXPECT_THAT(ids(request), ElementsAre(kGerman));
}

TEST_F(SummaryStylesTest, RefusesStylesThatTheModelLacks) {
  ExpectBad(In(SUMMARY_STYLE_PARAGRAPH),
            "is paragraph, model \"styled\" has title, sentence: set one of these, or none");
  ExpectBad(In(static_cast<SummaryStyle>(9)), "is 9, which this server does not know");
  SummarizeRequest request = In(SUMMARY_STYLE_TITLE);
  request.set_language_code("de");
  ExpectBad(request, "is title, model \"styled\" has no styles");
  request.set_language_code("fr");
  ExpectBad(request, "is title, model \"plain\" has no styles: leave it unset");
  request.clear_style();
  EXPECT_THAT(CheckRequest(request, *catalog, {}), IsOk());
}

TEST_F(SummaryStylesTest, ScoreIsThatOfTheStyle) {
  linnet::v1::ScoreRequest request;
  request.set_model("styled");
  request.set_source_language_code("en");
  request.add_pairs()->set_source_text("The dog runs.");
  request.mutable_pairs(0)->set_target_text("A dog.");
  const auto id = [&] {
    return (*CheckRequest(request, *catalog, {})).languages->before_source_ids(0);
  };
  EXPECT_EQ(id(), kTitle) << "the first";
  request.set_style(SUMMARY_STYLE_SENTENCE);
  EXPECT_EQ(id(), kSentence);
  request.set_style(SUMMARY_STYLE_PARAGRAPH);
  EXPECT_THAT(CheckRequest(request, *catalog, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has title, sentence")));
  request.set_style(static_cast<SummaryStyle>(9));
  EXPECT_EQ(Field(CheckRequest(request, *catalog, {}).status()), "style");
}

TEST_F(SummaryStylesTest, SettingsOfADocumentAreChecked) {
  SummarizeRequest settings = In(SUMMARY_STYLE_PARAGRAPH);
  settings.clear_contents();
  EXPECT_EQ(Field(CheckSettings(settings, *catalog, {})), "style");
  settings.set_style(SUMMARY_STYLE_SENTENCE);
  EXPECT_THAT(CheckSettings(settings, *catalog, {}), IsOk());
  // The language of the lines, and with it the model, is not known yet.
  settings.clear_language_code();
  settings.set_style(SUMMARY_STYLE_PARAGRAPH);
  EXPECT_THAT(CheckSettings(settings, *catalog, {}), IsOk());
  settings.set_style(static_cast<SummaryStyle>(9));
  EXPECT_EQ(Field(CheckSettings(settings, *catalog, {})), "style");
}

TEST_F(SummaryStylesTest, ModelListsItsStylesAndEachPairOnce) {
  const std::vector<linnet::v1::Model> models = catalog->List();
  ASSERT_EQ(models.size(), 2);
  EXPECT_THAT(models[0].summary_styles(), IsEmpty());
  EXPECT_THAT(models[1].summary_styles(), ElementsAre(SUMMARY_STYLE_TITLE, SUMMARY_STYLE_SENTENCE));
  std::vector<std::string> languages;
  for (const auto& pair : models[1].language_pairs())
    languages.push_back(pair.source_language_code());
  EXPECT_THAT(languages, ElementsAre("en", "de"));
}

TEST_F(SummaryStylesTest, GoldenExampleHasItsStyle) {
  int styled = 0;  // the warm-up repeats the example
  for (const model::SequenceInput& input : of_loading) {
    if (input.before_text == 0) continue;  // of the other model
    EXPECT_EQ(input.source.front(), kSentence);
    ++styled;
  }
  EXPECT_GT(styled, 0);
}

TEST_F(SummaryStylesTest, EveryChunkIsReadInTheStyle) {
  std::string text;
  for (int i = 0; i < 20; ++i)  // no two chunks are alike
    text += absl::StrCat("The dog runs across street ", i * i, ". ");
  SummarizeRequest request = In(SUMMARY_STYLE_SENTENCE, text);
  request.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  request.set_alignments(true);
  const SummarizeResponse response = Answer(request);
  ASSERT_GT(response.summaries(0).segments_size(), 1);
  int tokens = 0;
  for (const model::SequenceInput& input : seen) {
    EXPECT_EQ(input.source.front(), kSentence);
    EXPECT_EQ(input.before_text, 1);
    EXPECT_LE(input.source.size(), 64);
    tokens += static_cast<int>(model::TextOf(input).size());
  }
  EXPECT_EQ(seen.size(), response.summaries(0).segments_size());
  EXPECT_EQ(response.summaries(0).usage().source_tokens(), tokens) << "without those of the style";
  for (const auto& segment : response.summaries(0).segments()) {
    for (const auto& aligned : segment.word_alignments()) {
      EXPECT_GE(aligned.source_begin(), segment.source_begin());
      EXPECT_LE(aligned.source_end(), segment.source_end());
    }
  }
}

TEST_F(SummaryStylesTest, TextIsNeverReadAsAStyle) {
  const std::string text = "The dog \x18 runs.";  // kTitle is the piece of this byte
  const ServedModel& plain = *catalog->models()[0];
  ASSERT_THAT(*plain.source_tokenizer->Encode(text), Contains(kTitle));
  Answer(In(SUMMARY_STYLE_SENTENCE, text));
  ASSERT_EQ(seen.size(), 1);
  EXPECT_THAT(model::TextOf(seen[0]), Not(Contains(kTitle)));
}

TEST_F(SummaryStylesTest, CacheKeepsStylesApart) {
  const std::string title = Answer(In(SUMMARY_STYLE_TITLE)).summaries(0).text();
  const std::string sentence = Answer(In(SUMMARY_STYLE_SENTENCE)).summaries(0).text();
  ASSERT_EQ(seen.size(), 2) << "the second style was answered with the first";
  EXPECT_NE(title, sentence);
  EXPECT_EQ(Answer(In(SUMMARY_STYLE_TITLE)).summaries(0).text(), title);
  EXPECT_EQ(Answer(SummaryOf("The dog runs.")).summaries(0).text(), title) << "the default";
  EXPECT_EQ(Answer(In(SUMMARY_STYLE_SENTENCE)).summaries(0).text(), sentence);
  EXPECT_EQ(seen.size(), 2);
}

// Many at once, so that some wait while an identical one runs.
TEST_F(SummaryStylesTest, RunsOfTwoStylesAreNotShared) {
  constexpr int kCalls = 32;
  std::vector<SummarizeRequest> requests;
  for (int i = 0; i < kCalls; ++i)
    requests.push_back(In(i % 2 == 0 ? SUMMARY_STYLE_TITLE : SUMMARY_STYLE_SENTENCE));
  std::vector<SummarizeResponse> responses(kCalls);
  std::vector<test::Notification> done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    calls->Summarize(requests[i], responses[i], {.arrived = absl::Now()},
                     [&done, i](const absl::Status& status) {
                       EXPECT_THAT(status, IsOk());
                       done[i].Open();
                     });
  }
  for (test::Notification& each : done) each.Pass();
  EXPECT_EQ(seen.size(), 2) << "one run for each style";
  for (int i = 2; i < kCalls; ++i)
    EXPECT_EQ(responses[i].summaries(0).text(), responses[i % 2].summaries(0).text());
  EXPECT_NE(responses[0].summaries(0).text(), responses[1].summaries(0).text());
}

}  // namespace
}  // namespace linnet::server
