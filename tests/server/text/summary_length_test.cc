// The requested length of summaries, from the request to the answer.
#include <string>
#include <vector>

#include "model/runtime/tokenizer/text_length.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::SummarizeResponse;
using ::testing::HasSubstr;

// Real searches over noise.
struct SummaryLengthTest : ::testing::Test {
  SummaryLengthTest()
      : fixture([](const model::Bundle&) {
          return std::make_unique<test::SearchEngine>(/*vocabulary_size=*/400, kTinyLimits, 3);
        }) {}

  static SummarizeRequest InWords(int words, const std::string& text = "The dog runs.") {
    SummarizeRequest request = SummaryOf(text);
    request.mutable_length()->set_words(words);
    return request;
  }
  SummarizeResponse Answer(const SummarizeRequest& request) {
    SummarizeResponse response;
    EXPECT_THAT(fixture.Call(&TextCalls::Summarize, request, response), IsOk());
    return response;
  }
  // The refused field and its message.
  std::string Refusal(const SummarizeRequest& request) {
    SummarizeResponse response;
    const absl::Status status = fixture.Call(&TextCalls::Summarize, request, response);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  TextFixture fixture;
};

std::string Sentences(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "The dog runs across the street. ";
  return text;
}

TEST_F(SummaryLengthTest, SummaryHasTheWishedWords) {
  for (int words : {1, 2, 4, 8, 12}) {
    for (const char* text : {"The dog runs.", "A bird sings in a tree.", "Rain falls."}) {
      const SummarizeResponse response = Answer(InWords(words, text));
      const int found = model::WordsIn(response.summaries(0).text());
      EXPECT_LE(found, words) << response.summaries(0).text();
      if (response.summaries(0).finish_reason() == linnet::v1::FINISH_REASON_STOP) {
        EXPECT_GE(4 * found, 3 * words) << response.summaries(0).text();
      }
    }
  }
}

TEST_F(SummaryLengthTest, ChunksShareTheLength) {
  SummarizeRequest request = InWords(9, Sentences(20));
  request.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  const SummarizeResponse response = Answer(request);
  const auto& summary = response.summaries(0);
  ASSERT_GT(summary.segments_size(), 1);
  EXPECT_LE(model::WordsIn(summary.text()), 9);
  for (const auto& segment : summary.segments())
    EXPECT_LE(segment.target_end() - segment.target_begin(), summary.text().size());
}

TEST_F(SummaryLengthTest, RequestReplacesTheModelsLimitsOnTokens) {
  // The model's own default is the source's length and 10.
  SummarizeRequest request = InWords(40, "Rain.");
  const auto checked = CheckRequest(request, *fixture.catalog, {});
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->options.for_longest().min_target_tokens, 1);
  EXPECT_EQ(checked->options.for_longest().max_target_tokens, 80);
  request.mutable_length()->set_words(3);
  EXPECT_EQ(CheckRequest(request, *fixture.catalog, {})->options.for_longest().max_target_tokens,
            28);
  request.set_max_summary_tokens(7);
  EXPECT_EQ(CheckRequest(request, *fixture.catalog, {})->options.for_longest().max_target_tokens,
            7);
  EXPECT_EQ(Answer(request).summaries_size(), 1);
  request.set_max_summary_tokens(0);
  EXPECT_EQ(Answer(request).summaries(0).finish_reason(), linnet::v1::FINISH_REASON_LENGTH);
}

TEST_F(SummaryLengthTest, RefusesLengthsThatNoSummaryHas) {
  EXPECT_THAT(Refusal(InWords(0)), HasSubstr("length.words: is 0, it must be from 1 to 80"));
  EXPECT_THAT(Refusal(InWords(-1)), HasSubstr("length.words: is -1"));
  EXPECT_THAT(Refusal(InWords(81)), HasSubstr("length.words: is 81"));
  SummarizeRequest request = SummaryOf("The dog runs.");
  request.mutable_length();
  EXPECT_THAT(Refusal(request), HasSubstr("length: has neither words nor sentences"));
  request = SummaryOf(Sentences(20));
  request.mutable_length()->set_sentences(1);
  request.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  EXPECT_THAT(Refusal(request), HasSubstr("length.sentences: is 1, and a text is read in"));
}

TEST_F(SummaryLengthTest, SummaryHasTheWishedSentences) {
  SummarizeRequest request = SummaryOf("The dog runs.");
  request.mutable_length()->set_sentences(1);
  const SummarizeResponse response = Answer(request);
  const auto& summary = response.summaries(0);
  if (summary.finish_reason() == linnet::v1::FINISH_REASON_STOP) {
    EXPECT_GE(model::CompleteSentencesIn(summary.text(), "en"), 1) << summary.text();
  } else {
    EXPECT_EQ(summary.usage().target_tokens(), 81)
        << "it ends without a sentence only at the limit";
  }
}

}  // namespace
}  // namespace linnet::server
