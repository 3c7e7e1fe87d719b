// Models with several language pairs, from the catalog to the answer.
#include <string>
#include <vector>

#include "server/text/text_call.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::ScoreRequest;
using linnet::v1::ScoreResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ids of tiny.spm that stand for languages here: each is also a piece.
constexpr int kGerman = 30, kFrench = 31, kEnglish = 32;

// Echo engines that record what they are given.
struct LanguagesTest : ::testing::Test {
  LanguagesTest() : LanguagesTest([this](const model::Bundle&) { return Recording(); }) {}

  template <typename Factory>
  explicit LanguagesTest(Factory factory) {
    auto many = test::TinyManifest("many", linnet::v1::TASK_TRANSLATE, "en", "fr");
    Add(many, "en", "fr", kEnglish, kFrench);
    Add(many, "en", "pt-BR", kEnglish, kGerman);
    Add(many, "de", "fr", kGerman, kFrench);
    many.mutable_languages(2)->add_after_source_ids(kEnglish);
    test::WriteBundle(folder.path() / "many", many);
    test::WriteBundle(folder.path() / "en-de",
                      test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de"));
    auto loaded = Catalog::Load(folder.path(), factory, {}, metrics);
    EXPECT_THAT(loaded, IsOk());
    catalog = *std::move(loaded);
    calls = std::make_unique<TextCalls>(*catalog, admission, pool, metrics);
    seen.clear();  // of the warm-up
  }

  static void Add(linnet::v1::BundleManifest& manifest, const std::string& source,
                  const std::string& target, int before, int forced) {
    auto& pair = *manifest.add_languages();
    pair.set_source_language_code(source);
    pair.set_target_language_code(target);
    pair.add_before_source_ids(before);
    pair.add_forced_target_ids(forced);
  }

  struct Recorder : test::EchoEngine {
    explicit Recorder(std::vector<model::SequenceInput>& seen)
        : EchoEngine({.limits = kTinyLimits}), seen(seen) {}
    absl::Status Add(std::span<const model::SequenceInput> inputs) override {
      seen.insert(seen.end(), inputs.begin(), inputs.end());
      return EchoEngine::Add(inputs);
    }
    std::vector<model::SequenceInput>& seen;
  };
  std::unique_ptr<model::Engine> Recording() { return std::make_unique<Recorder>(seen); }

  template <typename Request, typename Response>
  absl::Status Call(void (TextCalls::*method)(const Request&, Response&, const CallContext&,
                                              TextCalls::Done),
                    const Request& request, Response& response) {
    return MakeCall(*calls, method, request, response);
  }
  static TranslateRequest To(const std::string& target, std::vector<std::string> contents,
                             const std::string& source = "en") {
    TranslateRequest request = ToGerman(std::move(contents));
    request.set_source_language_code(source);
    request.set_target_language_code(target);
    return request;
  }
  absl::Status Refusal(const TranslateRequest& request) {
    return CheckRequest(request, *catalog, {}).status();
  }

  test::TemporaryFolder folder;
  std::vector<model::SequenceInput> seen;
  Metrics metrics;
  TextPool pool{2};
  Admission admission{{}, metrics};
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<TextCalls> calls;
};

TEST_F(LanguagesTest, ListModelsHasEveryPair) {
  const auto models = catalog->List();
  ASSERT_EQ(models.size(), 2);
  std::vector<std::string> pairs;
  for (const auto& pair : models[1].language_pairs())
    pairs.push_back(pair.source_language_code() + "-" + pair.target_language_code());
  EXPECT_THAT(pairs, ElementsAre("en-fr", "en-pt-BR", "de-fr"));
  EXPECT_EQ(models[1].source_language_code(), "en");
  EXPECT_EQ(models[0].language_pairs_size(), 1);
}

TEST_F(LanguagesTest, TargetLanguageChoosesThePair) {
  const auto find = [&](const char* name, const char* source, const char* target) {
    auto found =
        catalog->Find(linnet::v1::TASK_TRANSLATE, name, source, target, "source_language_code");
    if (!found.ok()) return std::string(found.status().message());
    return found->model->name() + " " + found->languages->source_language_code() + " " +
           found->languages->target_language_code();
  };
  EXPECT_EQ(find("", "en", "fr"), "many en fr");
  EXPECT_EQ(find("", "de-AT", "fr-CA"), "many de fr");
  EXPECT_EQ(find("", "en", "PT-br"), "many en pt-BR");
  EXPECT_EQ(find("", "en", "de"), "en-de en de");
  EXPECT_EQ(find("many", "", "pt-BR"), "many en pt-BR");
  EXPECT_EQ(find("en-de", "", ""), "en-de en de");
  EXPECT_EQ(find("", "fr", "en"),
            "no model translates fr to en: there is en to de, en to fr/pt-BR, de to fr");
  EXPECT_EQ(find("", "en", "pt"), "many en pt-BR") << "the variety that is expected";
  EXPECT_EQ(find("", "en", "pt-PT"),
            "no model translates en to pt-PT: there is en to de, en to fr/pt-BR, de to fr");
  EXPECT_EQ(find("many", "fr", "en"),
            "model: \"many\" translates en to fr/pt-BR, de to fr: ask for that, or name another "
            "model");
  EXPECT_THAT(find("many", "en", ""),
              HasSubstr("is required: \"many\" translates en to fr/pt-BR, de to fr"));
  EXPECT_THAT(find("many", "", "fr"), HasSubstr("is required: \"many\" translates"));
}

TEST_F(LanguagesTest, PivotIsEnglishElseTheFirstOfTheAlphabet) {
  const auto find = [&](const char* source, const char* target) -> std::string {
    const auto pivot = catalog->FindPivot(source, target);
    if (!pivot.has_value()) return "none";
    return pivot->first.model->name() + " " + pivot->first.languages->source_language_code() + " " +
           pivot->first.languages->target_language_code() + ", " + pivot->second.model->name() +
           " " + pivot->second.languages->source_language_code() + " " +
           pivot->second.languages->target_language_code();
  };
  const auto add = [&](const char* name, const char* source, const char* target) {
    test::WriteBundle(folder.path() / name,
                      test::TinyManifest(name, linnet::v1::TASK_TRANSLATE, source, target));
    ASSERT_TRUE(catalog->Reload().ok());
  };
  EXPECT_EQ(find("it", "fr"), "none");
  EXPECT_EQ(find("fr", "de"), "none");
  add("it-sv", "it", "sv");
  add("sv-fr", "sv", "fr");
  EXPECT_EQ(find("it", "fr"), "it-sv it sv, sv-fr sv fr");
  add("it-de", "it", "de");
  EXPECT_EQ(find("it", "fr"), "it-de it de, many de fr");
  add("it-en", "it", "en");
  EXPECT_EQ(find("it", "fr"), "it-en it en, many en fr");
  EXPECT_EQ(find("it-CH", "fr-CA"), "it-en it en, many en fr");
  EXPECT_EQ(find("it", "pt-br"), "it-en it en, many en pt-BR");
  EXPECT_EQ(find("it", "pt"), "it-en it en, many en pt-BR");
  EXPECT_EQ(find("it", "pt-PT"), "none");
  // A variety of the source or target language is no pivot.
  add("it-fr", "it", "fr-CA");
  add("fr-nl", "fr-CA", "nl");
  EXPECT_EQ(find("it", "nl"), "it-fr it fr-CA, fr-nl fr-CA nl");
  EXPECT_EQ(find("fr", "nl"), "none") << "fr-nl translates it directly";
}

TEST_F(LanguagesTest, SourceLanguageOfANamedModelIsDetected) {
  TranslateRequest request = To("fr", {"Der Hund läuft über die lange Straße nach Hause."}, "");
  request.set_model("many");
  auto checked = CheckRequest(request, *catalog, {});
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(checked->languages->source_language_code(), "de");
  EXPECT_EQ(checked->language_code, "de");
  EXPECT_EQ(checked->detected->language_code(), "de");
  request.set_contents(0, "The dog runs across the long road to the river.");
  EXPECT_EQ(CheckRequest(request, *catalog, {})->languages->source_language_code(), "en");
  request.set_target_language_code("pt-BR");  // only one source is left
  checked = CheckRequest(request, *catalog, {});
  ASSERT_THAT(checked, IsOk());
  EXPECT_FALSE(checked->detected.has_value());
  request.set_target_language_code("fr");
  request.set_contents(0, "1234");
  EXPECT_THAT(std::string(Refusal(request).message()), HasSubstr("set it to one of de, en"));
}

TEST_F(LanguagesTest, EverySegmentGetsItsTokens) {
  TranslateRequest request = To("fr", {"The dog runs. A bird sings.", "Go."}, "de");
  TranslateResponse response;
  ASSERT_THAT(Call(&TextCalls::Translate, request, response), IsOk());
  ASSERT_EQ(seen.size(), 3);
  for (const model::SequenceInput& input : seen) {
    EXPECT_EQ(input.source.front(), kGerman);
    EXPECT_EQ(input.source.back(), kEnglish);
    EXPECT_EQ(model::TextOf(input).back(), 2);
    EXPECT_THAT(input.silent, ElementsAre(kFrench));
  }
  // The echo of the text's tokens: nothing of the others is in the answer.
  EXPECT_EQ(response.translations(0).text(), "The dog runs. A bird sings.");
}

TEST_F(LanguagesTest, UsageAndDefaultLimitsCountTheTextAlone) {
  TranslateResponse many, one;
  ASSERT_THAT(Call(&TextCalls::Translate, To("fr", {"The dog runs."}), many), IsOk());
  ASSERT_THAT(Call(&TextCalls::Translate, To("de", {"The dog runs."}), one), IsOk());
  const auto& usage = many.translations(0).usage();
  EXPECT_EQ(usage.source_tokens(), one.translations(0).usage().source_tokens());
  EXPECT_EQ(usage.target_tokens(), one.translations(0).usage().target_tokens());
  EXPECT_EQ(many.translations(0).text(), one.translations(0).text());
  ASSERT_EQ(seen.size(), 2);
  EXPECT_EQ(seen[0].options.max_target_tokens, seen[1].options.max_target_tokens);
  EXPECT_EQ(seen[0].source.size(), seen[1].source.size() + 1);
}

TEST_F(LanguagesTest, TokensCountInTheLimitOnSources) {
  std::string word, text;
  while (true) {  // one token more than the model reads beside the language token
    word += " dog";
    const auto tokens = catalog->models()[0]->source_tokenizer->Encode(word);
    if (std::ssize(*tokens) + 1 > 64) break;
    text = word;
  }
  TranslateResponse response;
  ASSERT_THAT(Call(&TextCalls::Translate, To("de", {text}), response), IsOk());
  const int whole = static_cast<int>(seen.size());
  ASSERT_THAT(Call(&TextCalls::Translate, To("fr", {text}, "de"), response), IsOk());
  for (const model::SequenceInput& input : seen) EXPECT_LE(input.source.size(), 64);
  ScoreRequest request;
  request.set_source_language_code("de");
  request.set_target_language_code("fr");
  request.add_pairs()->set_source_text(text);
  request.mutable_pairs(0)->set_target_text("dog");
  ScoreResponse scores;
  EXPECT_EQ(whole, 1);
  EXPECT_THAT(std::string(Call(&TextCalls::Score, request, scores).message()),
              HasSubstr("model \"many\" reads at most 62"));
}

TEST_F(LanguagesTest, AlignmentsAreBetweenWordsOfTheTexts) {
  TranslateRequest request = To("fr", {"The dog runs."}, "de");
  request.set_alignments(true);
  TranslateResponse many, one;
  ASSERT_THAT(Call(&TextCalls::Translate, request, many), IsOk());
  request = To("de", {"The dog runs."});
  request.set_alignments(true);
  ASSERT_THAT(Call(&TextCalls::Translate, request, one), IsOk());
  const auto& segment = many.translations(0).segments(0);
  ASSERT_GT(segment.word_alignments_size(), 2);
  EXPECT_EQ(segment.SerializeAsString(), one.translations(0).segments(0).SerializeAsString());
}

TEST_F(LanguagesTest, GoldenExampleNamesItsPair) {
  auto manifest = test::TinyManifest("golden", linnet::v1::TASK_TRANSLATE, "en", "fr");
  Add(manifest, "en", "fr", kEnglish, kFrench);
  Add(manifest, "de", "fr", kGerman, kFrench);
  auto& golden = *manifest.add_golden_examples();
  golden.set_source_text("The dog runs.");
  golden.set_target_text("The dog runs.");
  golden.set_source_language_code("de");
  golden.set_target_language_code("fr");
  test::WriteBundle(folder.path() / "golden", manifest);
  ASSERT_TRUE(catalog->Reload().ok());
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().source.front(), kGerman);
  EXPECT_EQ(catalog->models()[1]->golden.different, 0);
}

// Real searches over noise.
struct NoisyLanguagesTest : LanguagesTest {
  NoisyLanguagesTest()
      : LanguagesTest([](const model::Bundle&) {
          return std::make_unique<test::SearchEngine>(/*vocabulary_size=*/400, kTinyLimits, 3);
        }) {}
};

TEST_F(NoisyLanguagesTest, NBestAndWordScoresLeaveOutForcedTokens) {
  TranslateRequest request = To("fr", {"The dog runs. A bird sings."});
  request.mutable_options()->set_n_best(3);
  request.mutable_options()->set_beam_size(4);
  request.set_word_scores(true);
  TranslateResponse response;
  ASSERT_THAT(Call(&TextCalls::Translate, request, response), IsOk());
  for (const auto& segment : response.translations(0).segments()) {
    ASSERT_EQ(segment.hypotheses_size(), 3);
    for (const auto& hypothesis : segment.hypotheses()) {
      ASSERT_EQ(hypothesis.token_scores_size(), hypothesis.tokens());
      double sum = 0;
      for (float score : hypothesis.token_scores()) {
        EXPECT_LT(score, 0) << "a forced token's score is 0";
        sum += score;
      }
      // The length counts the forced token.
      EXPECT_NEAR(hypothesis.score(), sum / (hypothesis.tokens() + 1), 1e-5);
    }
    EXPECT_GT(segment.words_size(), 0);
  }
}

TEST_F(NoisyLanguagesTest, ScoreOfATargetIsThatOfTheEngine) {
  ScoreRequest request;
  request.set_source_language_code("de");
  request.set_target_language_code("fr");
  request.add_pairs()->set_source_text("A bird sings. The dog runs.");
  request.mutable_pairs(0)->set_target_text("Ein Vogel singt.");
  ScoreResponse response;
  ASSERT_THAT(Call(&TextCalls::Score, request, response), IsOk());

  const ServedModel& model = *catalog->models()[1];
  test::SearchEngine engine(400, kTinyLimits, 3);
  model::SequenceInput input;
  input.source = *model.source_tokenizer->Encode(request.pairs(0).source_text());
  input.source.push_back(engine.info().special.eos);
  const auto text_tokens = std::ssize(input.source);
  input.source.insert(input.source.begin(), kGerman);
  input.source.push_back(kEnglish);
  input.before_text = input.after_text = 1;
  input.silent = {kFrench};
  input.target = *model.target_tokenizer->Encode(request.pairs(0).target_text());
  input.target->push_back(engine.info().special.eos);
  ASSERT_THAT(engine.Add({&input, 1}), IsOk());
  std::vector<model::Hypothesis> expected;
  while (expected.empty()) expected = (*engine.Step())[0].hypotheses;

  EXPECT_EQ(response.scores(0).score(), expected[0].score);
  EXPECT_THAT(response.scores(0).token_scores(),
              ::testing::ElementsAreArray(expected[0].token_scores));
  EXPECT_EQ(response.scores(0).usage().source_tokens(), text_tokens);
  EXPECT_EQ(response.scores(0).usage().target_tokens(), std::ssize(*input.target));
}

TEST_F(NoisyLanguagesTest, GlossaryTermsAreMetBehindForcedTokens) {
  TranslateRequest request = To("fr", {"The dog runs. A bird sings."});
  auto& entry = *request.mutable_glossary()->add_entries();
  entry.set_source_text("bird");
  entry.set_target_text("Vogel");
  request.mutable_options()->set_beam_size(6);
  TranslateResponse response;
  ASSERT_THAT(Call(&TextCalls::Translate, request, response), IsOk());
  const auto& segment = response.translations(0).segments(1);
  ASSERT_EQ(segment.glossary_terms_size(), 1);
  EXPECT_TRUE(segment.glossary_terms(0).met()) << response.translations(0).text();
  EXPECT_THAT(response.translations(0).text(), HasSubstr("Vogel"));
}

TEST_F(NoisyLanguagesTest, StreamedPartsAreThePrefixOfTheAnswer) {
  TranslateRequest request = To("fr", {"The dog runs. A bird sings.", "Go."});
  const Received streamed = Stream(*calls, request);
  ASSERT_THAT(streamed.status, IsOk());
  for (int content = 0; content < 2; ++content)
    EXPECT_EQ(streamed.text(content), streamed.response.translations(content).text());
  EXPECT_GE(streamed.parts.size(), 3) << "one for each segment";
  TranslateResponse unary;
  ASSERT_THAT(Call(&TextCalls::Translate, request, unary), IsOk());
  EXPECT_EQ(unary.translations(0).SerializeAsString(),
            streamed.response.translations(0).SerializeAsString());
}

TEST_F(NoisyLanguagesTest, AnswersOfPairsDiffer) {
  TranslateResponse french, portuguese, again;
  ASSERT_THAT(Call(&TextCalls::Translate, To("fr", {"The dog runs."}), french), IsOk());
  ASSERT_THAT(Call(&TextCalls::Translate, To("fr", {"The dog runs."}), again), IsOk());
  ASSERT_THAT(Call(&TextCalls::Translate, To("fr", {"The dog runs."}, "de"), portuguese), IsOk());
  EXPECT_EQ(french.translations(0).text(), again.translations(0).text());
  EXPECT_NE(french.translations(0).text(), portuguese.translations(0).text());
}

}  // namespace
}  // namespace linnet::server
