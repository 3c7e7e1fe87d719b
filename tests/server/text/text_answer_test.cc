// The content of answers.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/text/prepared_text.h"
#include "server/text/text_call.h"
#include "server/text/text_preparer.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TextAnswerTest, KeepsWhiteSpaceBetweenSegments) {
  TextFixture fixture;
  const std::string text = "\n  The dog runs.  A bird sings.\n\n\tPlease open the window. \n";
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  ASSERT_EQ(response.translations_size(), 1);
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_EQ(response.translations(0).segments_size(), 3);
  EXPECT_EQ(response.model(), "en-de");
  EXPECT_EQ(response.model_version(), "test");
}

TEST(TextAnswerTest, TreatsByteOrderMarkAsWhiteSpace) {
  TextFixture fixture;
  const std::string mark = "\uFEFF", text = "The dog runs. A bird sings.";
  TranslateResponse translated, marked;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), translated), IsOk());
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({mark + text}), marked), IsOk());
  EXPECT_EQ(marked.translations(0).text(), mark + text) << "kept like other white space";
  EXPECT_EQ(marked.translations(0).usage().source_tokens(),
            translated.translations(0).usage().source_tokens());
  EXPECT_EQ(marked.translations(0).segments(0).source_begin(), std::ssize(mark));

  SummarizeResponse summary;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, SummaryOf(mark + text), summary), IsOk());
  EXPECT_EQ(summary.summaries(0).text(), text);
  EXPECT_EQ(summary.summaries(0).segments(0).source_begin(), std::ssize(mark));
  for (const std::string& blank : {mark, mark + " \n"}) {
    EXPECT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({blank}), translated),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("white space")));
    EXPECT_THAT(fixture.Call(&TextCalls::Summarize, SummaryOf(blank), summary),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("white space")));
  }
}

TEST(TextAnswerTest, SummaryReadsLineEndsAsBlanks) {
  TextFixture fixture;
  SummarizeResponse summary;
  const std::string text = " \n The dog\nruns  fast. \r\n\tA bird\u2028sings.\n";
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, SummaryOf(text), summary), IsOk());
  EXPECT_EQ(summary.summaries(0).text(), "The dog runs  fast. A bird sings.") << "an echo";
  const auto& segment = summary.summaries(0).segments(0);
  EXPECT_EQ(segment.source_begin(), text.find("The"));
  EXPECT_EQ(segment.source_end(), text.size() - 1);
  linnet::v1::SummarizeRequest chunks = SummaryOf("");
  for (int i = 0; i < 20; ++i) chunks.mutable_contents(0)->append("The dog runs\nand runs. ");
  chunks.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  summary.Clear();
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, chunks, summary), IsOk());
  EXPECT_GT(summary.summaries(0).segments_size(), 1);
  EXPECT_THAT(summary.summaries(0).text(), ::testing::Not(HasSubstr("\n")));
}

// Chinese has no blanks between its sentences, German has.
TEST(TextAnswerTest, SentencesWithoutBlanksAreNotJoined) {
  TextFixture fixture;
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({"我爱你。你好吗？ ok"}), response),
              IsOk());
  const auto& translation = response.translations(0);
  EXPECT_EQ(translation.text(), "我爱你。 你好吗？ ok") << "an echo";
  ASSERT_EQ(translation.segments_size(), 3);
  EXPECT_EQ(translation.segments(1).source_begin(), std::string("我爱你。").size());
  EXPECT_EQ(translation.segments(1).target_begin(), std::string("我爱你。 ").size());
}

TEST(TextAnswerTest, SegmentsHaveSourceAndTargetRanges) {
  TextFixture fixture;
  const std::string text = " Please open the window.  She writes — a letter.";
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  const auto& translation = response.translations(0);
  ASSERT_EQ(translation.segments_size(), 2);
  std::vector<std::string> sources, targets;
  for (const auto& segment : translation.segments()) {
    sources.push_back(
        text.substr(segment.source_begin(), segment.source_end() - segment.source_begin()));
    targets.push_back(translation.text().substr(segment.target_begin(),
                                                segment.target_end() - segment.target_begin()));
    EXPECT_EQ(segment.finish_reason(), linnet::v1::FINISH_REASON_STOP);
  }
  EXPECT_THAT(sources, ::testing::ElementsAre("Please open the window.", "She writes — a letter."));
  EXPECT_EQ(targets, sources) << "an echo";
}

TEST(TextAnswerTest, KeepsOrderOfContents) {
  TextFixture fixture;
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i)
    texts.push_back(absl::StrCat(std::string(i % 7, 'a'), " number ", i));
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman(texts), response), IsOk());
  ASSERT_EQ(response.translations_size(), 40);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(response.translations(i).text(), texts[i]);
}

TEST(TextAnswerTest, DecodesLongSentenceInParts) {
  TextFixture fixture;
  std::string text = "The dog runs";
  for (int i = 0; i < 30; ++i) text += ", the bird sings in the garden";
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_GT(response.translations(0).segments_size(), 1);
  for (const auto& segment : response.translations(0).segments())
    EXPECT_TRUE(segment.part_of_sentence());
}

TEST(TextAnswerTest, SummaryReadsTextAsOneSource) {
  TextFixture fixture;
  const std::string text = "The dog runs. A bird sings.";
  SummarizeResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, SummaryOf(text), response), IsOk());
  ASSERT_EQ(response.summaries(0).segments_size(), 1);
  EXPECT_EQ(response.summaries(0).text(), text);
  EXPECT_EQ(response.summaries(0).segments(0).source_end(), text.size());
  EXPECT_EQ(response.summaries(0).segments(0).target_end(), text.size());
}

TEST(TextAnswerTest, RejectsTooLongTextWithLengthAndLimit) {
  TextFixture fixture;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the garden ";
  SummarizeResponse response;
  const absl::Status status = fixture.Call(&TextCalls::Summarize, SummaryOf(text), response);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contents[0]: text has ")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reads at most 64")));
  EXPECT_EQ(response.summaries_size(), 0);
}

// Sixty sentences of about five tokens, where the model reads 64.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "The dog runs ", i, ".  ");
  return text;
}

TEST(TextAnswerTest, SummarisesLongTextInChunks) {
  TextFixture fixture;
  const std::string text = LongText();
  auto request = SummaryOf(text);
  request.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  SummarizeResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, request, response), IsOk());
  const auto& summary = response.summaries(0);
  EXPECT_FALSE(summary.truncated());
  ASSERT_GT(summary.segments_size(), 3);
  std::string said;
  int read = 0, shortest = 1 << 20, longest = 0;
  for (const auto& segment : summary.segments()) {
    // Only white space separates chunks, and each begins with a sentence.
    EXPECT_EQ(absl::StripAsciiWhitespace(text.substr(read, segment.source_begin() - read)), "");
    EXPECT_THAT(text.substr(segment.source_begin()), ::testing::StartsWith("The dog"));
    const std::string chunk =
        text.substr(segment.source_begin(), segment.source_end() - segment.source_begin());
    EXPECT_EQ(summary.text().substr(segment.target_begin(),
                                    segment.target_end() - segment.target_begin()),
              chunk)
        << "an echo";
    absl::StrAppend(&said, said.empty() ? "" : " ", chunk);
    shortest = std::min(shortest, static_cast<int>(chunk.size()));
    longest = std::max(longest, static_cast<int>(chunk.size()));
    read = segment.source_end();
  }
  EXPECT_EQ(absl::StripAsciiWhitespace(text.substr(read)), "");
  EXPECT_EQ(summary.text(), said);
  EXPECT_GT(2 * shortest, longest) << "of about equal length";
}

TEST(TextAnswerTest, ChunksAndNotTheirSentencesCountAsSegments) {
  SummarizeResponse response;
  auto request = SummaryOf(LongText());
  request.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  TextFixture fixture({}, {}, {.max_segments = 40});  // fewer than the sentences
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, request, response), IsOk());
  const int chunks = response.summaries(0).segments_size();
  ASSERT_LE(chunks, 40);
  TextFixture small({}, {}, {.max_segments = chunks - 1});
  const absl::Status status = small.Call(&TextCalls::Summarize, request, response);
  EXPECT_EQ(ErrorReason(status), "TOO_MANY_SEGMENTS") << status;
  request.set_long_input(linnet::v1::LONG_INPUT_TRUNCATE);
  EXPECT_THAT(small.Call(&TextCalls::Summarize, request, response), IsOk());
}

TEST(TextAnswerTest, TruncatesLongTextOnRequest) {
  TextFixture fixture;
  auto request = SummaryOf(LongText());
  request.set_long_input(linnet::v1::LONG_INPUT_TRUNCATE);
  request.add_contents("The dog runs.");
  request.add_contents("The dog runs.\u00A0\u3000");
  SummarizeResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, request, response), IsOk());
  EXPECT_TRUE(response.summaries(0).truncated());
  EXPECT_FALSE(response.summaries(2).truncated()) << "white space is nothing to read";
  ASSERT_EQ(response.summaries(0).segments_size(), 1);
  EXPECT_EQ(response.summaries(0).text(),
            request.contents(0).substr(0, response.summaries(0).segments(0).source_end()));
  EXPECT_GT(response.summaries(0).usage().source_tokens(), 64 / 2);
  EXPECT_FALSE(response.summaries(1).truncated());
  EXPECT_EQ(response.summaries(1).text(), "The dog runs.");
}

TEST(TextAnswerTest, ShortTextIsOneChunk) {
  TextFixture fixture;
  for (auto way : {linnet::v1::LONG_INPUT_CHUNK, linnet::v1::LONG_INPUT_TRUNCATE,
                   linnet::v1::LONG_INPUT_REJECT, linnet::v1::LONG_INPUT_UNSPECIFIED}) {
    auto request = SummaryOf(" The dog runs. A bird sings. ");
    request.set_long_input(way);
    SummarizeResponse response;
    ASSERT_THAT(fixture.Call(&TextCalls::Summarize, request, response), IsOk());
    EXPECT_EQ(response.summaries(0).segments_size(), 1);
    EXPECT_FALSE(response.summaries(0).truncated());
  }
}

TEST(TextAnswerTest, WordsHaveMeanScoreOfTheirTokens) {
  TextFixture fixture;
  TranslateRequest request = ToGerman({"  The dog — größer 日本 runs. \n A bird sings."});
  TranslateResponse plain, asked;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, plain), IsOk());
  EXPECT_EQ(plain.translations(0).segments(0).words_size(), 0);
  request.set_word_scores(true);
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, asked), IsOk());
  const auto& translation = asked.translations(0);
  std::vector<std::string> words;
  for (const auto& segment : translation.segments()) {
    for (const auto& word : segment.words()) {
      EXPECT_GE(word.target_begin(), segment.target_begin());
      EXPECT_LE(word.target_end(), segment.target_end());
      words.push_back(
          translation.text().substr(word.target_begin(), word.target_end() - word.target_begin()));
      EXPECT_FLOAT_EQ(word.score(), -0.5f) << "what the echo says of each token";
    }
  }
  EXPECT_THAT(words, ::testing::ElementsAre("The", "dog", "—", "größer", "日本", "runs.", "A",
                                            "bird", "sings."));
}

TEST(TextAnswerTest, AnswerHasDetectedLanguage) {
  TextFixture fixture;
  TranslateRequest request = ToGerman({"The dog runs across the street."});
  TranslateResponse said, detected;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, said), IsOk());
  EXPECT_FALSE(said.has_detected_language());
  request.clear_source_language_code();
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, detected), IsOk());
  EXPECT_EQ(detected.detected_language().language_code(), "en");
  EXPECT_EQ(detected.model(), "en-de");
}

TEST(TextAnswerTest, DetectsLanguageOfEachText) {
  TextFixture fixture;
  linnet::v1::DetectLanguageRequest request;
  request.add_contents("The dog runs across the street.");
  request.add_contents("Der Hund läuft über die Straße.");
  request.add_contents("12345");
  linnet::v1::DetectLanguageResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::DetectLanguage, request, response), IsOk());
  ASSERT_EQ(response.detections_size(), 3);
  EXPECT_EQ(response.detections(0).languages(0).language_code(), "en");
  EXPECT_TRUE(response.detections(0).reliable());
  EXPECT_EQ(response.detections(1).languages(0).language_code(), "de");
  EXPECT_EQ(response.detections(2).languages_size(), 0);
  EXPECT_FALSE(response.detections(2).reliable());
  request.add_contents(" ");
  EXPECT_THAT(fixture.Call(&TextCalls::DetectLanguage, request, response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contents[3]")));
}

// An algorithm that looks back from each segment over all marks would take minutes at this size.
TEST(TextAnswerTest, PreparesMegabytesOfClosingMarks) {
  TextFixture fixture;
  const TranslateRequest asked = ToGerman({std::string(2 << 20, ')')});
  const TextRequest request = *CheckRequest(asked, *fixture.catalog, {.max_text_bytes = 8 << 20});
  const auto hold = [](int64_t) { return absl::OkStatus(); };
  const absl::StatusOr<PreparedText> work =
      PrepareText(request, request.items[0], /*glossary=*/nullptr, {.hold = hold});
  ASSERT_THAT(work.status(), IsOk());
  EXPECT_GT(work->segments.size(), 10000);
}

TEST(TextAnswerTest, GetModelReturnsTheListedModel) {
  TextFixture fixture({}, {.max_tokens = 800}, {.max_contents = 9});
  linnet::v1::ListModelsResponse list;
  fixture.calls->ListModels(list);
  ASSERT_EQ(list.models_size(), 2);
  linnet::v1::GetModelRequest request;
  linnet::v1::GetModelResponse response;
  request.set_name("en-summary");
  ASSERT_THAT(fixture.calls->GetModel(request, response), IsOk());
  EXPECT_EQ(response.model().SerializeAsString(), list.models(1).SerializeAsString());
  EXPECT_EQ(response.model().max_beam_size(), 8);
  EXPECT_EQ(response.model().limits().max_source_tokens(), 64);
  EXPECT_EQ(response.request_limits().max_contents(), 9);
  EXPECT_EQ(response.request_limits().max_call_tokens(), 600) << "three quarters";
  EXPECT_EQ(list.request_limits().max_contents(), 9);
  request.set_name("babel");
  EXPECT_THAT(fixture.calls->GetModel(request, response),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is en-de, en-summary")));
  request.clear_name();
  EXPECT_THAT(fixture.calls->GetModel(request, response),
              StatusIs(absl::StatusCode::kInvalidArgument, "name: is required"));
}

TEST(TextAnswerTest, GetModelReturnsTheListedVersion) {
  TextFixture fixture;
  for (const char* version : {"1", "2"}) {
    linnet::v1::BundleManifest manifest =
        test::TinyManifest("de-en", linnet::v1::TASK_TRANSLATE, "de", "en");
    manifest.set_version(version);
    test::WriteBundle(fixture.folder.path() / "de-en" / version, manifest);
  }
  std::filesystem::create_symlink("1", fixture.folder.path() / "de-en/stable");
  std::filesystem::create_symlink("2", fixture.folder.path() / "de-en/canary");
  ASSERT_TRUE(fixture.catalog->Reload().ok());
  linnet::v1::ListModelsResponse list;
  fixture.calls->ListModels(list);
  std::vector<std::string> names;
  for (const linnet::v1::Model& listed : list.models()) {
    names.push_back(listed.name());
    linnet::v1::GetModelRequest request;
    linnet::v1::GetModelResponse response;
    request.set_name(listed.name());
    ASSERT_THAT(fixture.calls->GetModel(request, response), IsOk());
    EXPECT_EQ(response.model().SerializeAsString(), listed.SerializeAsString());
  }
  EXPECT_THAT(names, ElementsAre("de-en", "de-en@2", "en-de", "en-summary"));
}

TEST(TextAnswerTest, FinishReasonTellsLimit) {
  TextFixture fixture;
  TranslateRequest request = ToGerman({"The dog runs through the garden."});
  request.mutable_options()->set_max_target_tokens(3);
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  EXPECT_EQ(response.translations(0).finish_reason(), linnet::v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(response.translations(0).segments(0).finish_reason(), linnet::v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(response.translations(0).usage().target_tokens(), 4) << "three and the end token";
  EXPECT_THAT(fixture.metrics.Text(),
              HasSubstr("linnet_length_limited_total{model=\"en-de\"} 1\n"));
}

TEST(TextAnswerTest, HypothesesOnlyWithNBest) {
  TextFixture fixture;
  TranslateRequest request = ToGerman({"The dog runs."});
  TranslateResponse plain, asked;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, plain), IsOk());
  EXPECT_EQ(plain.translations(0).segments(0).hypotheses_size(), 0);
  request.mutable_options()->set_beam_size(4);
  request.mutable_options()->set_n_best(3);
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, asked), IsOk());
  const auto& segment = asked.translations(0).segments(0);
  ASSERT_EQ(segment.hypotheses_size(), 3);
  EXPECT_EQ(segment.hypotheses(0).text(), "The dog runs.");
  EXPECT_EQ(segment.hypotheses(0).score(), segment.score());
  EXPECT_EQ(segment.hypotheses(0).tokens(), asked.translations(0).usage().target_tokens());
  EXPECT_EQ(segment.hypotheses(0).token_scores_size(), segment.hypotheses(0).tokens());
  EXPECT_GT(segment.hypotheses(0).score(), segment.hypotheses(1).score());
}

TEST(TextAnswerTest, FillsUsageAndTimings) {
  TextFixture fixture;
  TranslateResponse response;
  ASSERT_THAT(
      fixture.Call(&TextCalls::Translate, ToGerman({"The dog runs.\nA bird sings."}), response),
      IsOk());
  const auto& usage = response.translations(0).usage();
  EXPECT_EQ(usage.source_tokens(), usage.target_tokens()) << "an echo";
  EXPECT_GE(usage.source_tokens(), 4);
  EXPECT_TRUE(response.timings().has_total());
  EXPECT_TRUE(response.timings().has_tokenize());
  EXPECT_TRUE(response.timings().has_queue());
  EXPECT_TRUE(response.timings().has_decode());
}

}  // namespace
}  // namespace linnet::server
