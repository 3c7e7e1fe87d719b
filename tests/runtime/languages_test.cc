// Language pairs of a manifest, and the tokens that a search forces for them.
#include "model/runtime/bundle/languages.h"

#include "model/runtime/engine.h"
#include "tests/runtime/bundle_fixture.h"
#include "tests/runtime/search/search_scenarios.h"

namespace linnet::model {
namespace {

using linnet::v1::BundleManifest;
using linnet::v1::LanguageTokens;
using linnet::v1::SUMMARY_STYLE_PARAGRAPH;
using linnet::v1::SUMMARY_STYLE_SENTENCE;
using linnet::v1::SUMMARY_STYLE_TITLE;
using linnet::v1::SUMMARY_STYLE_UNSPECIFIED;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LanguageTokens& Add(BundleManifest& manifest, const std::string& source,
                    const std::string& target) {
  LanguageTokens& pair = *manifest.add_languages();
  pair.set_source_language_code(source);
  pair.set_target_language_code(target);
  return pair;
}

std::string Name(const LanguageTokens* pair) {
  return pair == nullptr ? "none"
                         : pair->source_language_code() + "-" + pair->target_language_code();
}

using LanguagesTest = BundleTest;

TEST_F(LanguagesTest, ManifestWithoutThemHasItsOwnPair) {
  const LanguagePairs pairs(manifest_);
  ASSERT_EQ(pairs.all().size(), 1);
  EXPECT_EQ(Name(&pairs.own()), "en-de");
  EXPECT_EQ(pairs.Summary(), "en to de");
  EXPECT_EQ(pairs.max_forced_tokens(), 0);
  EXPECT_THAT(SourceControlIds(manifest_), IsEmpty());
}

TEST_F(LanguagesTest, FindsWholeTagsBeforePrimarySubtags) {
  for (const char* target : {"pt-BR", "pt", "de", "fr"}) Add(manifest_, "en", target);
  Add(manifest_, "de", "en");
  const LanguagePairs pairs(manifest_);
  EXPECT_EQ(Name(&pairs.own()), "en-de") << "the manifest's pair comes first";
  EXPECT_EQ(Name(pairs.Find("EN", "PT-br")), "en-pt-BR");
  EXPECT_EQ(Name(pairs.Find("en-GB", "pt-PT")), "en-pt");
  EXPECT_EQ(Name(pairs.Exact("en-GB", "pt")), "none");
  EXPECT_EQ(Name(pairs.Find("fr", "en")), "none");
  EXPECT_EQ(Name(pairs.Find("", "en")), "de-en");
  EXPECT_EQ(Name(pairs.Find("en", "")), "en-de");
  EXPECT_THAT(pairs.Sources("de-AT"), ElementsAre("en"));
  EXPECT_THAT(pairs.Sources(""), ElementsAre("en", "de"));
  EXPECT_THAT(pairs.Targets("en"), ElementsAre("de", "pt-BR", "pt", "fr"));
  EXPECT_EQ(pairs.Summary(), "en to de/pt-BR/pt/fr, de to en");
}

TEST_F(LanguagesTest, FindsTheNearestVariety) {
  for (const char* target : {"de", "zh-Hant", "zh", "pt-PT", "pt-BR", "sr-Latn", "iw", "nb"})
    Add(manifest_, "en", target);
  const LanguagePairs pairs(manifest_);
  for (const auto& [asked, found] :
       std::vector<std::pair<const char*, const char*>>{{"zh_TW", "en-zh-Hant"},
                                                        {"zh-HK", "en-zh-Hant"},
                                                        {"zh_CN", "en-zh"},
                                                        {"cmn", "en-zh"},
                                                        {"pt", "en-pt-BR"},
                                                        {"pt_PT.UTF-8", "en-pt-PT"},
                                                        {"pt-AO", "none"},
                                                        {"sr", "none"},
                                                        {"sr_RS@latin", "en-sr-Latn"},
                                                        {"sh", "en-sr-Latn"},
                                                        {"he", "en-iw"},
                                                        {"no", "en-nb"},
                                                        {"nb_NO", "en-nb"},
                                                        {"DE_at", "en-de"},
                                                        {"nl", "none"}})
    EXPECT_EQ(Name(pairs.Find("en", asked)), found) << asked;
  EXPECT_EQ(pairs.Nearest("en", "pt-BR").distance, 0);
  EXPECT_EQ(pairs.Nearest("en", "pt").distance, 1);
  EXPECT_EQ(pairs.Nearest("en-US", "zh-HK").distance, 3) << "1 for the source, 2 for the target";
}

TEST(LanguageCodeTest, IsReadAsWhatItMeans) {
  for (const auto& [written, canonical] :
       std::vector<std::pair<const char*, const char*>>{{"en_US", "en-US"},
                                                        {"zh_CN", "zh-CN"},
                                                        {"pt_br", "pt-BR"},
                                                        {"PT-BR", "pt-BR"},
                                                        {"EN", "en"},
                                                        {"iw", "he"},
                                                        {"in", "id"},
                                                        {"ji", "yi"},
                                                        {"cmn", "zh"},
                                                        {"deu", "de"},
                                                        {"de_DE.UTF-8", "de-DE"},
                                                        {"sr_RS@latin", "sr-Latn-RS"},
                                                        {"de_DE@euro", "de-DE"},
                                                        {"zh_hant_hk", "zh-Hant-HK"},
                                                        {" fr ", "fr"}})
    EXPECT_EQ(CanonicalLanguage(written), canonical) << written;
  for (const char* written :
       {"", "C", "POSIX", "english", "e", "en--US", "a b", "x-foo", "123", "deutsch_DE", "en\xff"})
    EXPECT_EQ(CanonicalLanguage(written), std::nullopt) << written;
}

TEST_F(LanguagesTest, SummaryOfManyPairsNamesTheLanguagesOfEachSide) {
  manifest_.clear_languages();
  for (char a = 'a'; a <= 'p'; ++a) {
    for (char b = 'a'; b <= 'p'; ++b) {
      if (a != b) Add(manifest_, std::string("x") + a, std::string("x") + b);
    }
  }
  EXPECT_THAT(LanguagePairs(manifest_).Summary(), HasSubstr("xo/xp to xb/xc/"));
  EXPECT_LT(LanguagePairs(manifest_).Summary().size(), 200);
}

TEST_F(LanguagesTest, ReadsTokensOfAPair) {
  LanguageTokens& pair = Add(manifest_, "en", "de");
  pair.add_before_source_ids(7);
  pair.add_after_source_ids(8);
  pair.add_forced_target_ids(9);
  manifest_.add_control_ids(11);
  const auto bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  const LanguagePairs pairs(bundle->manifest);
  EXPECT_EQ(pairs.max_forced_tokens(), 1);
  EXPECT_EQ(pairs.max_source_tokens(), 2);
  EXPECT_THAT(SourceControlIds(bundle->manifest), ElementsAre(7, 8, 11));
  EXPECT_THAT(TargetControlIds(bundle->manifest), ElementsAre(9, 11));
  SequenceInput input;
  input.source = {20, 21, 2};
  AddLanguageTokens(pairs.own(), input);
  EXPECT_THAT(input.source, ElementsAre(7, 20, 21, 2, 8));
  EXPECT_THAT(TextOf(input), ElementsAre(20, 21, 2));
  EXPECT_THAT(input.silent, ElementsAre(9));
}

TEST_F(LanguagesTest, RefusesPairsThatAModelCannotServe) {
  const auto refuse = [&](auto change, const std::vector<std::string>& parts) {
    ExpectRefusal([&](BundleManifest& m) { change(Add(m, "en", "de")); }, parts);
  };
  refuse([](LanguageTokens& p) { p.set_source_language_code("english"); },
         {"languages", "\"english\"", "BCP-47"});
  refuse([](LanguageTokens& p) { p.set_target_language_code("fr"); },
         {"the manifest's own pair", "en", "de"});
  refuse([](LanguageTokens& p) { p.add_before_source_ids(400); },
         {"before_source_ids with 400", "between 0 and 399"});
  refuse([](LanguageTokens& p) { p.add_after_source_ids(-1); }, {"after_source_ids with -1"});
  refuse([](LanguageTokens& p) { p.add_forced_target_ids(2); },
         {"forced_target_ids with 2", "end token 2"});
  refuse([](LanguageTokens& p) { p.add_forced_target_ids(1); }, {"forced_target_ids with 1"});
  refuse(
      [](LanguageTokens& p) {
        for (int i = 0; i < 9; ++i) p.add_forced_target_ids(9);
      },
      {"9 forced_target_ids", "at most 8"});
  ExpectRefusal(
      [](BundleManifest& m) {
        Add(m, "en", "de");
        Add(m, "EN", "de");
      },
      {"\"EN\" to \"de\" twice"});
  ExpectRefusal(
      [](BundleManifest& m) {
        Add(m, "en", "de").add_before_source_ids(7);
        m.mutable_limits()->set_max_source_tokens(2);
      },
      {"no room", "max_source_tokens 2"});
  ExpectRefusal(
      [](BundleManifest& m) {
        Add(m, "en", "de");
        Add(m, "en", "fr");
        m.set_word_tokenizer(linnet::v1::WORD_TOKENIZER_MOSES);
      },
      {"2 pairs", "MOSES"});
  ExpectRefusal([](BundleManifest& m) { m.add_control_ids(3); }, {"control_ids has 3"});
  ExpectRefusal([](BundleManifest& m) { m.add_control_ids(400); }, {"control_ids has 400"});
  ExpectRefusal(
      [](BundleManifest& m) { m.mutable_golden_examples(0)->set_target_language_code("fr"); },
      {"golden_examples", "\"fr\"", "en to de"});
}

TEST_F(LanguagesTest, SummariserHasTheSameLanguageOnBothSides) {
  manifest_.set_task(linnet::v1::TASK_SUMMARIZE);
  manifest_.set_target_language_code("en");
  Add(manifest_, "en", "en");
  Add(manifest_, "de", "de");
  EXPECT_THAT(Read(), IsOk());
  EXPECT_EQ(LanguagePairs(manifest_).Languages(), "en/de");
  ExpectRefusal([](BundleManifest& m) { Add(m, "de", "en"); }, {"\"de\" to \"en\"", "summary"});
}

// A summariser of English and German, which has styles for English.
void AddStyles(BundleManifest& manifest) {
  manifest.set_task(linnet::v1::TASK_SUMMARIZE);
  manifest.set_target_language_code("en");
  manifest.mutable_golden_examples(0)->clear_target_language_code();
  int id = 7;
  for (const auto style : {SUMMARY_STYLE_SENTENCE, SUMMARY_STYLE_TITLE}) {
    LanguageTokens& entry = Add(manifest, "en", "en");
    entry.set_style(style);
    entry.add_before_source_ids(id++);
  }
  Add(manifest, "de", "de").add_before_source_ids(id);
}

TEST_F(LanguagesTest, FindsTheEntryOfAStyle) {
  AddStyles(manifest_);
  ASSERT_THAT(Read(), IsOk());
  const LanguagePairs pairs(manifest_);
  const LanguageTokens* const english = pairs.Find("en-GB", "");
  ASSERT_NE(english, nullptr);
  EXPECT_EQ(english, &pairs.own());
  EXPECT_EQ(english->style(), SUMMARY_STYLE_SENTENCE) << "the first of the manifest";
  EXPECT_EQ(pairs.WithStyle(*english, SUMMARY_STYLE_UNSPECIFIED), english);
  EXPECT_EQ(pairs.WithStyle(*english, SUMMARY_STYLE_SENTENCE), english);
  const LanguageTokens* const title = pairs.WithStyle(*english, SUMMARY_STYLE_TITLE);
  ASSERT_NE(title, nullptr);
  EXPECT_THAT(title->before_source_ids(), ElementsAre(8));
  EXPECT_EQ(pairs.WithStyle(*title, SUMMARY_STYLE_SENTENCE), english);
  EXPECT_EQ(pairs.WithStyle(*english, SUMMARY_STYLE_PARAGRAPH), nullptr);
  EXPECT_THAT(pairs.Styles(*english), ElementsAre(SUMMARY_STYLE_SENTENCE, SUMMARY_STYLE_TITLE));
  EXPECT_THAT(pairs.Styles(), ElementsAre(SUMMARY_STYLE_SENTENCE, SUMMARY_STYLE_TITLE));
  const LanguageTokens* const german = pairs.Exact("de", "de");
  ASSERT_NE(german, nullptr);
  EXPECT_THAT(pairs.Styles(*german), IsEmpty());
  EXPECT_EQ(pairs.WithStyle(*german, SUMMARY_STYLE_UNSPECIFIED), german);
  EXPECT_EQ(pairs.WithStyle(*german, SUMMARY_STYLE_TITLE), nullptr);
  EXPECT_EQ(pairs.Languages(), "en/de");
  EXPECT_EQ(pairs.Summary(), "en to en, de to de");
  EXPECT_THAT(SourceControlIds(manifest_), ElementsAre(7, 8, 9));
}

TEST_F(LanguagesTest, RefusesStylesThatNoRequestCouldChoose) {
  AddStyles(manifest_);
  ExpectRefusal([](BundleManifest& m) { Add(m, "EN", "EN").set_style(SUMMARY_STYLE_TITLE); },
                {"\"EN\" to \"EN\" twice with style SUMMARY_STYLE_TITLE", "leave one"});
  ExpectRefusal([](BundleManifest& m) { Add(m, "en", "en"); },
                {"with style SUMMARY_STYLE_SENTENCE and without a style", "every entry"});
  ExpectRefusal([](BundleManifest& m) { Add(m, "de", "de").set_style(SUMMARY_STYLE_TITLE); },
                {"\"de\" to \"de\" with style SUMMARY_STYLE_TITLE and without a style"});
  ExpectRefusal([](BundleManifest& m) { Add(m, "de", "de"); }, {"\"de\" to \"de\" twice: leave"});
  ExpectRefusal(
      [](BundleManifest& m) {
        m.mutable_languages(0)->set_style(static_cast<linnet::v1::SummaryStyle>(9));
      },
      {"style 9", "SUMMARY_STYLE_TITLE, SUMMARY_STYLE_SENTENCE, SUMMARY_STYLE_PARAGRAPH"});
  ExpectRefusal([](BundleManifest& m) { m.set_task(linnet::v1::TASK_TRANSLATE); },
                {"style SUMMARY_STYLE_SENTENCE", "only a model with TASK_SUMMARIZE", "leave it"});
  ExpectRefusal(
      [](BundleManifest& m) { m.mutable_golden_examples(0)->set_style(SUMMARY_STYLE_PARAGRAPH); },
      {"golden_examples", "SUMMARY_STYLE_PARAGRAPH", "whose styles are sentence, title"});
  manifest_.mutable_golden_examples(0)->set_style(SUMMARY_STYLE_TITLE);
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(LanguagesTest, StylesOfOneLanguageShareItsWordTokenizer) {
  AddStyles(manifest_);
  manifest_.mutable_languages()->RemoveLast();
  manifest_.set_word_tokenizer(linnet::v1::WORD_TOKENIZER_MOSES);
  EXPECT_THAT(Read(), IsOk());
}

TEST(StyleNamesTest, AreThoseOfTheApiInLowerCase) {
  EXPECT_EQ(StyleName(SUMMARY_STYLE_PARAGRAPH), "paragraph");
  EXPECT_EQ(StyleNamed("title"), SUMMARY_STYLE_TITLE);
  EXPECT_EQ(StyleNamed("unspecified"), std::nullopt);
  EXPECT_EQ(StyleNamed("Title"), std::nullopt);
  EXPECT_EQ(StyleNames({SUMMARY_STYLE_TITLE, SUMMARY_STYLE_SENTENCE}), "title, sentence");
  EXPECT_EQ(StyleNames({}), "none");
}

// A search with silent tokens is that of a model that has read them, without them.
TEST(SilentTokensTest, ResultsAreThoseOfAModelThatHasReadThem) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Scenario scenario = RandomScenario(seed);
    SearchOptions& options = scenario.options;
    options.normalize_scores = false;
    options.no_repeat_ngram_size = options.max_ngram_repeats = 0;
    const std::vector<TokenId> silent(1 + seed % 3, 3 + seed % 2);
    const ToyModel behind = [&](const std::vector<TokenId>& target) {
      std::vector<TokenId> whole = silent;
      whole.insert(whole.end(), target.begin(), target.end());
      return scenario.model(whole);
    };
    std::vector<std::vector<TokenId>> phrases;
    if (options.beam_size > 1 && options.max_target_tokens > 3 && seed % 2 == 0)
      phrases = {{static_cast<TokenId>(3 + seed % 3), 4}};
    const auto expected =
        RunSearch(BeamSearch({options, scenario.special, scenario.prefix, Constraints(phrases)}),
                  options.temperature, behind);
    for (Rows rows : {Rows::kWhole, Rows::kCut}) {
      const auto outcome = RunSearch(BeamSearch({options, scenario.special, scenario.prefix,
                                                 Constraints(phrases), nullptr, silent}),
                                     options.temperature, scenario.model, rows);
      ASSERT_THAT(expected, IsOk());
      ASSERT_THAT(outcome, IsOk()) << "seed " << seed;
      ASSERT_TRUE(SameBits(outcome->hypotheses, expected->hypotheses))
          << "seed " << seed << "\n"
          << Describe(outcome->hypotheses) << Describe(expected->hypotheses);
      ASSERT_TRUE(StablePrefixesHold(*outcome)) << "seed " << seed;
      ASSERT_EQ(outcome->steps, expected->steps + std::ssize(silent)) << "seed " << seed;
    }
    const auto scored = RunSearch(Scorer({.options = options,
                                          .special = scenario.special,
                                          .silent = silent,
                                          .target = expected->hypotheses[0].tokens}),
                                  options.temperature, scenario.model);
    ASSERT_THAT(scored, IsOk());
    EXPECT_EQ(scored->hypotheses[0].tokens, expected->hypotheses[0].tokens);
    EXPECT_EQ(scored->hypotheses[0].token_scores, expected->hypotheses[0].token_scores);
    EXPECT_EQ(scored->hypotheses[0].score, expected->hypotheses[0].score);
  }
}

TEST(SilentTokensTest, CountInTheLengthOfAScoreAlone) {
  const SearchOptions options = {.beam_size = 2, .length_penalty = 1, .max_target_tokens = 3};
  const auto outcome = RunSearch(BeamSearch({options, kSpecial, {}, {}, nullptr, {5, 6}}),
                                 options.temperature, RandomModel(1, 12, 0, -9));
  ASSERT_THAT(outcome, IsOk());
  for (const Hypothesis& hypothesis : outcome->hypotheses) {
    ASSERT_EQ(hypothesis.tokens.size(), 4);
    ASSERT_EQ(hypothesis.token_scores.size(), 4);
    float sum = 0;
    for (float score : hypothesis.token_scores) sum += score;
    EXPECT_NEAR(hypothesis.score, sum / 6, 1e-6);
    EXPECT_TRUE(hypothesis.ended_by_limit);
  }
}

TEST(SilentTokensTest, SampledTargetsStartWithThem) {
  SearchOptions options = {.beam_size = 3, .max_target_tokens = 6, .n_best = 3};
  options.seed = 7;
  std::vector<TokenId> seen;
  const ToyModel model = [&](const std::vector<TokenId>& target) {
    if (!target.empty()) seen.push_back(target[0]);
    return RandomModel(2, 12, 0, 0)(target);
  };
  const auto outcome = RunSearch(BeamSearch({options, kSpecial, {8}, {}, nullptr, {5}}), 1, model);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_THAT(seen, ::testing::Each(5));
  for (const Hypothesis& hypothesis : outcome->hypotheses) EXPECT_EQ(hypothesis.tokens[0], 8);
}

TEST(SilentTokensTest, TargetBehindThemMayBeginWithTheCapitalsMark) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const SpelledScenario scenario = RandomSpelledScenario(seed);
    SearchOptions options = scenario.options;
    options.normalize_scores = false;
    options.no_repeat_ngram_size = options.max_ngram_repeats = 0;
    const std::vector<TokenId> silent = {scenario.special.unk};
    const ToyModel behind = [&](const std::vector<TokenId>& target) {
      std::vector<TokenId> whole = silent;
      whole.insert(whole.end(), target.begin(), target.end());
      return scenario.model(whole);
    };
    const auto expected =
        RunSearch(BeamSearch({options, scenario.special, scenario.prefix, {}, scenario.grammar}),
                  options.temperature, behind);
    const auto outcome = RunSearch(
        BeamSearch({options, scenario.special, scenario.prefix, {}, scenario.grammar, silent}),
        options.temperature, scenario.model);
    ASSERT_THAT(expected, IsOk());
    ASSERT_THAT(outcome, IsOk());
    ASSERT_TRUE(SameBits(outcome->hypotheses, expected->hypotheses)) << "seed " << seed;
  }
}

TEST(SilentTokensTest, EngineRefusesWhatAModelCannotHave) {
  EngineInfo info;
  info.vocabulary_size = info.source_vocabulary_size = 50;
  info.max_language_tokens = 1;
  SequenceInput input;
  input.source = {9, 10, 2, 8};
  input.before_text = input.after_text = 1;
  input.silent = {9};
  EXPECT_THAT(CheckSequence(input, info), IsOk());
  const auto refusal = [&](auto change) {
    SequenceInput changed = input;
    change(changed);
    return std::string(CheckSequence(changed, info).message());
  };
  EXPECT_THAT(refusal([](auto& i) { i.silent = {9, 9}; }), HasSubstr("at most 1"));
  EXPECT_THAT(refusal([](auto& i) { i.silent = {50}; }), HasSubstr("outside the vocabulary of 50"));
  EXPECT_THAT(refusal([](auto& i) { i.silent = {2}; }), HasSubstr("is the end token"));
  EXPECT_THAT(refusal([](auto& i) { i.after_text = 0; }), HasSubstr("must end with the end token"));
  EXPECT_THAT(refusal([](auto& i) { i.before_text = 3; }), HasSubstr("the source is empty"));
}

TEST(LanguageTest, KnowsLanguagesWithoutBlanks) {
  for (const char* code : {"zh", "ZH-Hant", "ja", "th", "my"})
    EXPECT_TRUE(IsUnspacedLanguage(code));
  for (const char* code : {"de", "ko", "vi", "tha", ""}) EXPECT_FALSE(IsUnspacedLanguage(code));
}

}  // namespace
}  // namespace linnet::model
