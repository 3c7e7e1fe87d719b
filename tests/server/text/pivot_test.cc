// Translation through a third language, by two models.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/text/pivot_texts.h"
#include "tests/server/text/pivot_server.h"
#include "tests/server/text/request_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::Segment;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PivotTest, AnswerIsThatOfTwoCallsMadeByHand) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    PivotServer server(PivotServer::Noise(seed));
    const std::vector<std::string> contents = {" A bird sings.  The dog runs.\n\nShe writes. ",
                                               "Last one."};
    TranslateRequest request = To("fr", contents);
    request.mutable_options()->set_beam_size(1 + static_cast<int>(seed % 4));
    if (seed % 3 == 0) request.mutable_options()->set_normalize_scores(false);
    request.set_word_scores(seed % 2 == 0);
    const TranslateResponse answer = server.Translated(request);
    request.set_target_language_code("de");
    const TranslateResponse german = server.Translated(request);

    ASSERT_EQ(answer.translations_size(), 2);
    for (int i = 0; i < 2; ++i) {
      const auto& translation = answer.translations(i);
      const auto& first = german.translations(i);
      ASSERT_EQ(translation.segments_size(), first.segments_size());
      int source_tokens = first.usage().source_tokens();
      int target_tokens = first.usage().target_tokens();
      bool limited = first.finish_reason() == linnet::v1::FINISH_REASON_LENGTH;
      std::string text;
      int read = 0;
      for (int j = 0; j < first.segments_size(); ++j) {
        const Segment& segment = translation.segments(j);
        const Segment& half = first.segments(j);
        request.set_source_language_code("de");
        request.set_target_language_code("fr");
        request.set_contents(0, TextOf(first.text(), half));
        while (request.contents_size() > 1) request.mutable_contents()->RemoveLast();
        const TranslateResponse second = server.Translated(request);
        const auto& french = second.translations(0);
        EXPECT_EQ(TextOf(translation.text(), segment), french.text());
        EXPECT_EQ(segment.source_begin(), half.source_begin());
        EXPECT_EQ(segment.source_end(), half.source_end());
        float score = half.score();
        std::vector<std::string> words, expected;
        for (const Segment& part : french.segments()) {
          score += part.score();
          for (const auto& word : part.words()) expected.push_back(word.ShortDebugString());
        }
        for (linnet::v1::Word word : segment.words()) {
          word.set_target_begin(word.target_begin() - segment.target_begin());
          word.set_target_end(word.target_end() - segment.target_begin());
          words.push_back(word.ShortDebugString());
        }
        EXPECT_EQ(segment.score(), score);
        EXPECT_EQ(words, expected);
        source_tokens += french.usage().source_tokens();
        target_tokens += french.usage().target_tokens();
        limited |= french.finish_reason() == linnet::v1::FINISH_REASON_LENGTH;
        // White space between sentences is that of the source.
        text += contents[i].substr(read, segment.source_begin() - read) + french.text();
        read = segment.source_end();
      }
      if (i == 0) text += " ";
      EXPECT_EQ(translation.text(), text);
      EXPECT_EQ(translation.usage().source_tokens(), source_tokens);
      EXPECT_EQ(translation.usage().target_tokens(), target_tokens);
      EXPECT_EQ(translation.finish_reason() == linnet::v1::FINISH_REASON_LENGTH, limited);
    }
  }
}

TEST(PivotTest, SentencesOfAThirdLanguageWithoutBlanksGetThem) {
  TextFixture server;
  WriteModel(server, "ja", "zh");
  WriteModel(server, "zh", "fr");
  ASSERT_TRUE(server.catalog->Reload().ok());
  const TranslateRequest request = To("fr", {"犬。猫。\n犬。"}, "ja");
  const Received received = Stream(*server.calls, request);
  ASSERT_THAT(received.status, IsOk());
  EXPECT_EQ(received.response.pivot().language_code(), "zh");
  EXPECT_EQ(received.response.translations(0).text(), "犬。 猫。\n犬。");
  std::string streamed;
  for (const TextPart& part : received.parts) streamed += part.text();
  EXPECT_EQ(streamed, "犬。 猫。\n犬。");
}

TEST(PivotTest, BlanksOfTheThirdLanguageAreInNoAnswerWithoutBlanks) {
  TextFixture server;
  WriteModel(server, "ja", "fr");
  WriteModel(server, "fr", "zh");
  WriteModel(server, "fr", "es");
  ASSERT_TRUE(server.catalog->Reload().ok());
  for (const auto& [target, text] :
       {std::pair("zh", "犬。猫。\n犬。"), {"es", "犬。 猫。\n犬。"}}) {
    const Received received = Stream(*server.calls, To(target, {"犬。猫。\n犬。"}, "ja"));
    ASSERT_THAT(received.status, IsOk());
    EXPECT_EQ(received.response.pivot().language_code(), "fr");
    EXPECT_EQ(received.response.translations(0).text(), text);
    std::string streamed;
    for (const TextPart& part : received.parts) streamed += part.text();
    EXPECT_EQ(streamed, text);
  }
}

TEST(PivotTest, PivotTextMayHaveMoreSentencesThanACallMayHaveSegments) {
  TextFixture server({}, {}, {.max_segments = 1});
  WriteModel(server, "de", "en");
  WriteModel(server, "en", "fr");
  ASSERT_TRUE(server.catalog->Reload().ok());
  const std::string text = "Das ist Kap. 3 bzw. Kap. 4.";
  TranslateResponse response;
  EXPECT_EQ(ErrorReason(server.Call(&TextCalls::Translate, To("de", {text}), response)),
            "TOO_MANY_SEGMENTS")
      << "several sentences in English";
  ASSERT_THAT(server.Call(&TextCalls::Translate, To("fr", {text}, "de"), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
}

TEST(PivotTest, ReplyNamesBothModelsAndTheLanguage) {
  PivotServer server;
  const TranslateResponse answer = server.Translated(To("fr-CA", {"The dog runs."}, "en-GB"));
  EXPECT_EQ(answer.model(), "de-fr");
  EXPECT_EQ(answer.model_version(), "test");
  EXPECT_EQ(answer.pivot().language_code(), "de");
  EXPECT_EQ(answer.pivot().model(), "en-de");
  EXPECT_EQ(answer.pivot().model_version(), "test");
  EXPECT_EQ(answer.translations(0).text(), "The dog runs.");
  EXPECT_FALSE(server.Translated(To("de", {"The dog runs."})).has_pivot());
}

TEST(PivotTest, DirectModelAlwaysWins) {
  PivotServer server;
  test::WriteBundle(server.folder.path() / "zz",
                    test::TinyManifest("zz", linnet::v1::TASK_TRANSLATE, "en", "fr"));
  ASSERT_TRUE(server.catalog->Reload().ok());
  const TranslateResponse answer = server.Translated(To("fr", {"The dog runs."}));
  EXPECT_EQ(answer.model(), "zz");
  EXPECT_FALSE(answer.has_pivot());
}

TEST(PivotTest, DirectOnlyAndANamedModelKeepTheError) {
  PivotServer server;
  TranslateRequest request = To("fr", {"The dog runs."});
  request.set_direct_only(true);
  EXPECT_THAT(CheckRequest(request, *server.catalog, {}).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       "no model translates en to fr: there is de to fr, en to de"));
  request.set_direct_only(false);
  request.set_model("de-fr");
  EXPECT_THAT(CheckRequest(request, *server.catalog, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("translates de to fr")));
  linnet::v1::ScoreRequest score;
  score.set_source_language_code("en");
  score.set_target_language_code("fr");
  score.add_pairs()->set_source_text("dog");
  score.mutable_pairs(0)->set_target_text("chien");
  EXPECT_THAT(CheckRequest(score, *server.catalog, {}).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(PivotTest, NothingIsTranslatedIntoItsOwnLanguage) {
  PivotServer server;
  test::WriteBundle(server.folder.path() / "de-en",
                    test::TinyManifest("de-en", linnet::v1::TASK_TRANSLATE, "de", "en"));
  ASSERT_TRUE(server.catalog->Reload().ok());
  for (const auto& [source, target] : {std::pair{"en", "en"}, {"de-AT", "de-DE"}}) {
    EXPECT_THAT(
        CheckRequest(To(target, {"The dog runs."}, source), *server.catalog, {}).status(),
        StatusIs(absl::StatusCode::kNotFound, HasSubstr(absl::StrCat(source, " to ", target))));
  }
  // A text that is in the target language is not translated into another one and back.
  const auto detected =
      CheckRequest(To("en", {"The quick brown dog runs through the garden of the old school."}, ""),
                   *server.catalog, {});
  ASSERT_THAT(detected.status(), IsOk());
  EXPECT_EQ(detected->model, nullptr);
  EXPECT_EQ(detected->unchanged.size(), 1);
}

TEST(PivotTest, DetectedLanguageMayNeedAPivot) {
  PivotServer server;
  const TranslateResponse answer = server.Translated(
      To("fr", {"The quick brown dog runs through the garden of the old school."}, ""));
  EXPECT_EQ(answer.detected_language().language_code(), "en");
  EXPECT_EQ(answer.pivot().language_code(), "de");
}

TEST(PivotTest, LanguagesThatNeedAPivotCountWhereNoneIsSet) {
  PivotServer server;
  EXPECT_THAT(CheckRequest(To("fr", {"Ok"}, ""), *server.catalog, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("set it to one of de, en,")));
  TranslateRequest request = To("fr", {"Ok"}, "");
  request.set_direct_only(true);
  EXPECT_THAT(CheckRequest(request, *server.catalog, {}).status(), IsOk());
  request.set_direct_only(false);
  request.set_model("de-fr");
  EXPECT_THAT(CheckRequest(request, *server.catalog, {}).status(), IsOk());
}

TEST(PivotTest, DetectedLanguageIsThatOfAModelWithAnotherTag) {
  TextFixture server;
  WriteModel(server, "nb", "en");
  ASSERT_TRUE(server.catalog->Reload().ok());
  const std::string text = "Jeg vet ikke hva dette heter, men det er en helt vanlig norsk setning.";
  const auto checked = CheckRequest(To("de", {text}, ""), *server.catalog, {});
  ASSERT_THAT(checked.status(), IsOk());
  EXPECT_EQ(checked->detected->language_code(), "nb") << "as the model has it";
  EXPECT_EQ(checked->model->name(), "nb-en");
  EXPECT_NE(checked->second, nullptr);
}

TEST(PivotTest, RefusesWhatCannotBeCarriedThrough) {
  PivotServer server;
  const auto refusal = [&](const TranslateRequest& request) {
    return CheckRequest(request, *server.catalog, {}).status();
  };
  TranslateRequest request = To("fr", {"The dog runs."});
  request.mutable_options()->set_n_best(2);
  EXPECT_THAT(refusal(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no model translates en to fr directly, only through de"),
                             HasSubstr("leave it out"))));
  EXPECT_EQ(Field(refusal(request)), "options.n_best");
  request.clear_options();
  request.mutable_glossary()->add_entries()->set_source_text("dog");
  EXPECT_EQ(refusal(request).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Field(refusal(request)), "glossary");
  request.clear_glossary();
  request.mutable_options()->set_beam_size(9);
  EXPECT_EQ(Field(refusal(request)), "options.beam_size");
}

TEST(PivotTest, LimitsOnTargetTokensAreForTheSecondModel) {
  PivotServer server;
  TranslateRequest request = To("fr", {"The dog runs through the garden."});
  request.mutable_options()->set_max_target_tokens(2);
  const TranslateResponse answer = server.Translated(request);
  EXPECT_EQ(answer.translations(0).finish_reason(), linnet::v1::FINISH_REASON_LENGTH);
  request.clear_options();
  const TranslateResponse whole = server.Translated(request);
  EXPECT_EQ(answer.translations(0).usage().source_tokens(),
            whole.translations(0).usage().source_tokens())
      << "the second model has read all that the first can write";
}

// Echo engines give three quarters of a token's attention to itself and the rest to the next one,
// so both models have the same attention between words, and the answer has its square.
TEST(PivotTest, AlignmentsAreTheProductOfBothModels) {
  PivotServer server;
  const std::string text = "A dog runs. \n A bird sings.";
  TranslateRequest request = To("fr", {text});
  request.set_alignments(true);
  const TranslateResponse answer = server.Translated(request);
  ASSERT_EQ(answer.translations(0).segments_size(), 2);
  const model::Tokenizer& tokenizer = *server.catalog->models()[0]->source_tokenizer;
  for (const Segment& segment : answer.translations(0).segments()) {
    const std::string sentence = TextOf(text, segment);
    std::vector<model::TokenId> tokens = *tokenizer.Encode(sentence);
    tokens.push_back(2);
    const size_t count = tokens.size();
    std::vector<float> tokens_attention(count * count);
    for (size_t t = 0; t < count; ++t) {
      tokens_attention[t * count + t] += 0.75f;
      tokens_attention[t * count + std::min(t + 1, count - 1)] += 0.25f;
    }
    const std::vector<AlignedWord> words = AlignedWords(tokenizer, tokens, {.text = sentence});
    const WordAttention attention(words, count, tokens_attention);
    ASSERT_EQ(words.size(), 3);
    std::vector<std::vector<float>> weights;
    for (const AlignedWord& word : words) weights.push_back(attention.SourceWeights(word));
    std::map<std::pair<int, int>, float> expected, found;
    for (size_t t = 0; t < 3; ++t) {
      for (size_t s = 0; s < 3; ++s) {
        float sum = 0;
        for (size_t p = 0; p < 3; ++p) sum += weights[t][p] * weights[p][s];
        if (sum >= kMinAlignmentWeight) expected[{words[t].begin, words[s].begin}] = sum;
      }
    }
    for (const auto& link : segment.word_alignments()) {
      found[{link.target_begin() - segment.target_begin(),
             link.source_begin() - segment.source_begin()}] = link.weight();
    }
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [words, weight] : expected) EXPECT_NEAR(found[words], weight, 1e-6);
    EXPECT_GT(found.size(), 3) << "not the strongest alone";
  }
}

TEST(PivotTest, AttentionIsComposedByWordsOfThePivot) {
  // Two words of the pivot, "ab" and "cd", on two of the source.
  AttentionTable first;
  first.source = {{0, 3}, {4, 6}};
  first.target = {{0, 2}, {3, 5}};
  first.weights = {0.75f, 0.25f, 0.5f, 0.5f};
  const std::vector<float> both = {0.5f, 0.25f};
  EXPECT_THAT(first.Compose(std::vector<WordRange>{{0, 2}, {3, 5}}, 0, both),
              ElementsAre(0.5f, 0.25f));
  // The second sentence of the pivot text begins with its second word, which is cut in two.
  EXPECT_THAT(first.Compose(std::vector<WordRange>{{0, 1}, {1, 2}}, 3, both),
              ElementsAre(0.375f, 0.375f));
  EXPECT_THAT(first.Compose({}, 0, {}), ElementsAre(0, 0));
}

}  // namespace
}  // namespace linnet::server
