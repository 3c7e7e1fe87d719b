#include <string>
#include <vector>

#include "server/base/errors.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::ScoreRequest;
using linnet::v1::ScoreResponse;
using ::testing::HasSubstr;

Catalog::EngineFactory Noise(uint64_t seed) {
  return [seed](const model::Bundle&) {
    return std::make_unique<test::SearchEngine>(/*vocabulary_size=*/400, kTinyLimits, seed);
  };
}

ScoreRequest Pair(const std::string& source, const std::string& target) {
  ScoreRequest request;
  request.set_source_language_code("en");
  request.set_target_language_code("DE");
  request.add_pairs()->set_source_text(source);
  request.mutable_pairs(0)->set_target_text(target);
  return request;
}

TEST(ScoreTest, AnswerHasTheScoresOfTheEngine) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    TextFixture fixture(Noise(seed));
    const std::string source = "A bird sings. The dog runs.";
    const std::string target = "Ein Vogel singt, der Hund läuft.";
    ScoreRequest request = Pair(source, target);
    request.mutable_options()->set_temperature(2);
    request.mutable_options()->set_length_penalty(0.5);
    ScoreResponse response;
    ASSERT_THAT(fixture.Call(&TextCalls::Score, request, response), IsOk());

    const ServedModel& model = *fixture.catalog->models()[0];
    test::SearchEngine engine(400, kTinyLimits, seed);
    model::SequenceInput input;
    input.source = *model.source_tokenizer->Encode(source);
    input.source.push_back(engine.info().special.eos);
    input.target = *model.target_tokenizer->Encode(target);
    input.target->push_back(engine.info().special.eos);
    input.options.temperature = 2;
    input.options.length_penalty = 0.5;
    ASSERT_THAT(engine.Add({&input, 1}), IsOk());
    std::vector<model::Hypothesis> said;
    while (said.empty()) said = (*engine.Step())[0].hypotheses;

    EXPECT_EQ(response.scores(0).score(), said[0].score);
    EXPECT_THAT(response.scores(0).token_scores(),
                ::testing::ElementsAreArray(said[0].token_scores));
    EXPECT_EQ(response.scores(0).usage().source_tokens(), std::ssize(input.source));
    EXPECT_EQ(response.scores(0).usage().target_tokens(), std::ssize(*input.target));
  }
}

TEST(ScoreTest, SkipsByteOrderMarks) {
  TextFixture fixture(Noise(3));
  const std::string mark = "\uFEFF";
  ScoreResponse plain, marked;
  ASSERT_THAT(fixture.Call(&TextCalls::Score, Pair("A bird.", "Ein Vogel."), plain), IsOk());
  ASSERT_THAT(fixture.Call(&TextCalls::Score, Pair(mark + "A bird.", mark + "Ein Vogel."), marked),
              IsOk());
  EXPECT_EQ(marked.scores(0).score(), plain.scores(0).score());
  EXPECT_EQ(marked.scores(0).usage().target_tokens(), plain.scores(0).usage().target_tokens());
}

TEST(ScoreTest, ScoresAreBatchInvariant) {
  TextFixture fixture(Noise(3));
  ScoreRequest together = Pair("A bird sings. The dog runs.", "Ein Vogel");
  together.add_pairs()->set_source_text("She writes.");
  together.mutable_pairs(1)->set_target_text("Sie schreibt etwas.");
  together.set_word_scores(true);
  ScoreResponse all;
  ASSERT_THAT(fixture.Call(&TextCalls::Score, together, all), IsOk());
  EXPECT_EQ(all.model(), "en-de");
  EXPECT_EQ(all.model_version(), "test");
  EXPECT_TRUE(all.timings().has_total());
  ASSERT_EQ(all.scores_size(), 2);
  for (int i = 0; i < 2; ++i) {
    ScoreRequest alone = together;
    alone.clear_pairs();
    *alone.add_pairs() = together.pairs(i);
    ScoreResponse one;
    ASSERT_THAT(fixture.Call(&TextCalls::Score, alone, one), IsOk());
    EXPECT_EQ(one.scores(0).SerializeAsString(), all.scores(i).SerializeAsString());
    const auto& scored = one.scores(0);
    EXPECT_EQ(scored.text(), together.pairs(i).target_text());
    EXPECT_EQ(scored.usage().target_tokens(), scored.token_scores_size());
    double sum = 0;
    for (float score : scored.token_scores()) sum += score;
    EXPECT_NEAR(scored.score(), sum / scored.token_scores_size(), 1e-4) << "length penalty 1";
    ASSERT_EQ(scored.words_size(), i == 0 ? 2 : 3);
    EXPECT_EQ(scored.words(1).target_begin(), 4);
  }
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

TEST(ScoreTest, NamedSummariserScoresSummaries) {
  TextFixture fixture(Noise(3));
  ScoreRequest request;
  request.set_model("en-summary");
  request.add_pairs()->set_source_text("A bird sings. The dog runs.");
  request.mutable_pairs(0)->set_target_text("A bird.");
  ScoreResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Score, request, response), IsOk());
  EXPECT_EQ(response.model(), "en-summary");
  request.set_source_language_code("de");
  EXPECT_THAT(fixture.Call(&TextCalls::Score, request, response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model: ")));
}

TEST(ScoreTest, ErrorsNameTheField) {
  TextFixture fixture(Noise(1));
  ScoreResponse response;
  const auto refused = [&](const ScoreRequest& request, const std::string& says) {
    EXPECT_THAT(fixture.Call(&TextCalls::Score, request, response),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  ScoreRequest request = Pair("The dog.", "Der Hund.");
  request.clear_pairs();
  refused(request, "pairs: at least one text is needed");
  refused(Pair("", "Der Hund."), "pairs[0].source_text: text is empty");
  refused(Pair("The dog.", " \n"), "pairs[0].target_text: text is only white space");
  refused(Pair("The dog.", " \u3000\u00a0"), "pairs[0].target_text: text is only white space");
  refused(Pair("The dog.", "caf\xE9"), "pairs[0].target_text: text must be UTF-8, byte 3");
  std::string words;
  for (int i = 0; i < 90; ++i) words += "dog ";
  refused(Pair(words, "Der Hund."), "pairs[0].source_text: text has");
  refused(Pair("The dog.", words), "writes at most 80: shorten it");
  request = Pair("The dog.", "Der Hund.");
  request.mutable_options()->set_temperature(0);
  refused(request, "options.temperature: ");
  request = Pair("The dog.", "Der Hund.");
  request.clear_target_language_code();
  refused(request, "target_language_code: is required where no model is named");
  request.clear_source_language_code();
  refused(request, "target_language_code: is required where no model is named");
  request.set_model("babel");
  EXPECT_EQ(fixture.Call(&TextCalls::Score, request, response).code(), absl::StatusCode::kNotFound);
  request = Pair("The dog.", "Der Hund.");
  request.clear_source_language_code();
  EXPECT_THAT(fixture.Call(&TextCalls::Score, request, response), IsOk())
      << "one model alone translates to German";
}

TEST(ScoreTest, ScoreCostsItsTargetTokens) {
  TextFixture fixture(Noise(1), {.max_tokens = 60});
  ScoreResponse response;
  // A search would be charged 80 target tokens per hypothesis.
  EXPECT_THAT(fixture.Call(&TextCalls::Score, Pair("The dog.", "Der Hund."), response), IsOk());
}

TEST(ScoreTest, ErrorOfTooMuchWorkNamesThePairs) {
  TextFixture fixture({}, {.max_tokens = 5});
  ScoreResponse response;
  EXPECT_THAT(fixture.Call(&TextCalls::Score, Pair("The dog runs.", "Der Hund."), response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pairs: the call needs")));
}

}  // namespace
}  // namespace linnet::server
