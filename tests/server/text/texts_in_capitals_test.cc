// Texts in capitals for a model without a capitals mark: it reads and writes lower case.
#include <memory>
#include <string>
#include <vector>

#include "server/text/text_preparer.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::ScoreRequest;
using linnet::v1::ScoreResponse;
using linnet::v1::SummarizeResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::ElementsAre;

constexpr char kShouted[] = "THE DOG RUNS FAST.";
constexpr char kSpoken[] = "The dog runs fast.";

// The echo engine answers with its source, so the tokens of an answer are those that were read.
int TokensOf(TextFixture& fixture, const std::string& text) {
  return static_cast<int>(fixture.catalog->models()[0]->source_tokenizer->Encode(text)->size()) + 1;
}

linnet::v1::Translation Translate(TextFixture& fixture, const TranslateRequest& request) {
  TranslateResponse response;
  EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  return response.translations(0);
}

TEST(TextsInCapitalsTest, AreReadInLowerCaseAndAnsweredInCapitals) {
  TextFixture fixture;
  ASSERT_NE(TokensOf(fixture, kShouted), TokensOf(fixture, kSpoken));
  const auto shouted = Translate(fixture, ToGerman({kShouted}));
  const auto spoken = Translate(fixture, ToGerman({kSpoken}));
  EXPECT_EQ(shouted.text(), kShouted);
  EXPECT_EQ(spoken.text(), kSpoken);
  EXPECT_EQ(shouted.usage().source_tokens(), TokensOf(fixture, kSpoken));
  EXPECT_EQ(shouted.usage().target_tokens(), spoken.usage().target_tokens());
  EXPECT_EQ(shouted.segments(0).score(), spoken.segments(0).score());
}

TEST(TextsInCapitalsTest, EachSegmentHasItsOwnCase) {
  TextFixture fixture;
  const std::string text = "The dog runs. STOP IT NOW! A bird sings.";
  const auto translation = Translate(fixture, ToGerman({text}));
  EXPECT_EQ(translation.text(), text);
  ASSERT_EQ(translation.segments_size(), 3);
  EXPECT_EQ(translation.usage().source_tokens(), TokensOf(fixture, "The dog runs.") +
                                                     TokensOf(fixture, "Stop it now!") +
                                                     TokensOf(fixture, "A bird sings."));
}

TEST(TextsInCapitalsTest, AnswersAreInTheCapitalsOfTheTarget) {
  TextFixture fixture;
  // No text in capitals has an "ß", so the answer is what the model might say.
  TranslateRequest request = ToGerman({kShouted});
  const auto checked = CheckRequest(request, *fixture.catalog, {});
  ASSERT_THAT(checked, IsOk());
  auto prepared = PrepareText(*checked, checked->items[0], /*glossary=*/nullptr,
                              {.hold = [](int64_t) { return absl::OkStatus(); }});
  ASSERT_THAT(prepared, IsOk());
  model::Hypothesis answer;
  answer.tokens = *checked->model->target_tokenizer->Encode("Die Straße");
  EXPECT_EQ(HypothesisText(*checked, prepared->segments[0], answer), "DIE STRASSE");
}

TEST(TextsInCapitalsTest, PartsOfAStreamAreInCapitals) {
  TextFixture fixture;
  const TranslateRequest request = ToGerman({std::string("A bird sings. ") + kShouted});
  const Received streamed = Stream(*fixture.calls, request);
  EXPECT_THAT(streamed.status, IsOk());
  EXPECT_EQ(streamed.text(0), request.contents(0));
  EXPECT_GE(streamed.parts.size(), 2);
}

TEST(TextsInCapitalsTest, AlignmentsAndWordsAreThoseOfTheText) {
  TextFixture fixture;
  const std::string text = "THE  DOG RUNS ON 日 ROADS.";
  TranslateRequest request = ToGerman({text});
  request.set_alignments(true);
  request.set_word_scores(true);
  const auto translation = Translate(fixture, request);
  const linnet::v1::Segment& segment = translation.segments(0);
  std::vector<std::string> words, aligned;
  for (const auto& word : segment.words()) {
    words.push_back(
        translation.text().substr(word.target_begin(), word.target_end() - word.target_begin()));
  }
  int last = -1;
  for (const auto& alignment : segment.word_alignments()) {
    if (alignment.target_begin() == last) continue;  // a weaker one
    last = alignment.target_begin();
    aligned.push_back(
        text.substr(alignment.source_begin(), alignment.source_end() - alignment.source_begin()));
  }
  EXPECT_THAT(words, ElementsAre("THE", "DOG", "RUNS", "ON", "日", "ROADS."));
  EXPECT_EQ(aligned, words);
}

TEST(TextsInCapitalsTest, APairIsScoredInLowerCaseIfBothAreInCapitals) {
  // The echo engine would score its source instead of the target.
  TextFixture fixture([](const model::Bundle&) {
    return std::make_unique<test::SearchEngine>(/*vocabulary_size=*/400, kTinyLimits, /*seed=*/1);
  });
  const auto score = [&](const std::string& source, const std::string& target) {
    ScoreRequest request;
    request.set_model("en-de");
    request.add_pairs()->set_source_text(source);
    request.mutable_pairs(0)->set_target_text(target);
    ScoreResponse response;
    EXPECT_THAT(fixture.Call(&TextCalls::Score, request, response), IsOk());
    return response.scores(0);
  };
  const auto both = score(kShouted, kShouted);
  EXPECT_EQ(both.text(), kShouted);
  EXPECT_EQ(both.usage().source_tokens(), TokensOf(fixture, kSpoken));
  EXPECT_EQ(both.usage().target_tokens(), TokensOf(fixture, kSpoken));
  EXPECT_EQ(score(kShouted, "HALT!").usage().target_tokens(), TokensOf(fixture, "Halt!"));
  EXPECT_EQ(score(kShouted, "HALT!").text(), "HALT!");
  const auto source = score(kShouted, kSpoken);
  EXPECT_EQ(source.text(), kSpoken);
  EXPECT_EQ(source.usage().source_tokens(), TokensOf(fixture, kShouted));
  const auto target = score(kSpoken, kShouted);
  EXPECT_EQ(target.text(), kShouted);
  EXPECT_EQ(target.usage().target_tokens(), TokensOf(fixture, kShouted));
}

TEST(TextsInCapitalsTest, SummariesAreInCapitals) {
  TextFixture fixture;
  SummarizeResponse response;
  ASSERT_THAT(
      fixture.Call(&TextCalls::Summarize, SummaryOf("THE DOG RUNS. A BIRD SINGS."), response),
      IsOk());
  EXPECT_EQ(response.summaries(0).text(), "THE DOG RUNS. A BIRD SINGS.");
  EXPECT_EQ(response.summaries(0).usage().source_tokens(),
            TokensOf(fixture, "The dog runs. A bird sings."));
}

}  // namespace
}  // namespace linnet::server
