// Calls whose texts are in several languages, and languages that are chosen among those served.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "server/text/text_call.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::SummarizeResponse;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kGerman = "Guten Tag, wo ist die Katze?";
const char* const kPortuguese = "Onde está o gato?";
const char* const kEnglish = "Where is the cat, please?";

// A server of models with these pairs, "de-en" and "pt-en" for example. Their engines echo.
struct MixedLanguagesTest : ::testing::Test {
  void Serve(const std::vector<std::pair<std::string, std::string>>& pairs) {
    for (const auto& [source, target] : pairs) {
      const std::string name = absl::AsciiStrToLower(source + "-" + target);
      const auto task = source == target ? linnet::v1::TASK_SUMMARIZE : linnet::v1::TASK_TRANSLATE;
      test::WriteBundle(folder.path() / name, test::TinyManifest(name, task, source, target));
    }
    auto loaded = Catalog::Load(
        folder.path(),
        [](const model::Bundle&) {
          return std::make_unique<test::EchoEngine>(
              test::EchoEngine::Options{.limits = kTinyLimits});
        },
        {}, metrics);
    ASSERT_THAT(loaded, IsOk());
    calls.reset();  // before the catalog that it uses
    catalog = *std::move(loaded);
    calls = std::make_unique<TextCalls>(*catalog, admission, pool, metrics);
  }
  static TranslateRequest To(const std::string& target, std::vector<std::string> contents) {
    TranslateRequest request;
    for (std::string& text : contents) request.add_contents(std::move(text));
    request.set_target_language_code(target);
    return request;
  }
  template <typename Request, typename Response>
  absl::Status Call(void (TextCalls::*method)(const Request&, Response&, const CallContext&,
                                              TextCalls::Done),
                    const Request& request, Response& response) {
    absl::Status result = MakeCall(*calls, method, request, response);
    EXPECT_EQ(admission.tokens(), 0) << "a permit was not released";
    EXPECT_EQ(admission.bytes(), 0) << "a permit was not released";
    return result;
  }
  TranslateResponse Translated(const TranslateRequest& request) {
    TranslateResponse response;
    EXPECT_THAT(Call(&TextCalls::Translate, request, response), IsOk());
    return response;
  }

  test::TemporaryFolder folder;
  Metrics metrics;
  TextPool pool{2};
  Admission admission{{.max_tokens = 1'000'000}, metrics};
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<TextCalls> calls;
};

TEST_F(MixedLanguagesTest, AddingAModelDoesNotBreakCallsWithoutASource) {
  Serve({{"de", "en"}});
  EXPECT_EQ(Translated(To("en", {"Guten Tag"})).model(), "de-en");
  Serve({{"de", "en"}, {"pt", "en"}});
  for (const char* text : {"Guten Tag", "Wie geht es Ihnen?", "Danke schön"}) {
    const TranslateResponse answer = Translated(To("en", {text}));
    EXPECT_EQ(answer.model(), "de-en") << text;
    EXPECT_EQ(answer.detected_language().language_code(), "de") << text;
  }
  for (const char* text : {kPortuguese, "Não elaborou.", "Bom dia"}) {
    const TranslateResponse answer = Translated(To("en", {text}));
    EXPECT_EQ(answer.model(), "pt-en") << text;
    EXPECT_EQ(answer.detected_language().language_code(), "pt") << text;
    EXPECT_EQ(answer.translations(0).warnings_size(), 0) << text;
  }
}

TEST_F(MixedLanguagesTest, EachTextIsAnsweredByTheModelOfItsLanguage) {
  Serve({{"de", "en"}, {"pt", "en"}});
  const TranslateResponse answer = Translated(To("en", {kGerman, kPortuguese, kEnglish, kGerman}));
  ASSERT_EQ(answer.translations_size(), 4);
  std::vector<std::string> models, languages, texts;
  for (const auto& translation : answer.translations()) {
    models.push_back(translation.model());
    languages.push_back(translation.detected_language().language_code());
    texts.push_back(translation.text());
  }
  EXPECT_THAT(models, ElementsAre("de-en", "pt-en", "", "de-en"));
  EXPECT_THAT(languages, ElementsAre("de", "pt", "en", "de"));
  EXPECT_EQ(texts[0], texts[3]);
  EXPECT_EQ(texts[2], kEnglish);
  EXPECT_EQ(answer.translations(0).segments_size(), 1);
  EXPECT_EQ(answer.model(), "") << "several models answered";
  EXPECT_FALSE(answer.has_detected_language());
  // Each text as in a call of its own.
  EXPECT_EQ(Translated(To("en", {kGerman})).translations(0).text(), texts[0]);
  EXPECT_EQ(Translated(To("en", {kPortuguese})).translations(0).text(), texts[1]);
}

TEST_F(MixedLanguagesTest, TextsOfOneLanguageAreAnsweredAsBefore) {
  Serve({{"de", "en"}, {"pt", "en"}});
  const TranslateResponse answer = Translated(To("en", {kGerman, kGerman}));
  EXPECT_EQ(answer.model(), "de-en");
  EXPECT_EQ(answer.detected_language().language_code(), "de");
  EXPECT_EQ(answer.translations(1).detected_language().language_code(), "de");
  EXPECT_EQ(answer.translations(1).model(), "") << "the response names it";
}

TEST_F(MixedLanguagesTest, TextInTheTargetLanguageComesBackUnchanged) {
  Serve({{"de", "en"}});
  TranslateResponse answer = Translated(To("en", {kEnglish}));
  ASSERT_EQ(answer.translations_size(), 1);
  EXPECT_EQ(answer.translations(0).text(), kEnglish);
  EXPECT_EQ(answer.translations(0).segments_size(), 0);
  ASSERT_EQ(answer.translations(0).warnings_size(), 1);
  const linnet::v1::Warning& warning = answer.translations(0).warnings(0);
  EXPECT_EQ(warning.reason(), "ALREADY_IN_TARGET_LANGUAGE");
  EXPECT_EQ(warning.metadata().at("detectedLanguage"), "en");
  EXPECT_EQ(answer.model(), "");
  EXPECT_EQ(answer.detected_language().language_code(), "en");
  // One model for all other texts is named as before.
  answer = Translated(To("en", {kGerman, kEnglish}));
  EXPECT_EQ(answer.model(), "de-en");
  EXPECT_EQ(answer.translations(0).warnings_size(), 0);
  EXPECT_EQ(answer.translations(1).text(), kEnglish);
  // With a source language, the text is translated.
  TranslateRequest explicit_source = To("en", {kEnglish});
  explicit_source.set_source_language_code("de");
  answer = Translated(explicit_source);
  EXPECT_EQ(answer.model(), "de-en");
  EXPECT_EQ(answer.translations(0).segments_size(), 1);
}

TEST_F(MixedLanguagesTest, ShortTextTakesTheLanguageOfTheOthers) {
  Serve({{"de", "en"}, {"pt", "en"}});
  const TranslateResponse answer = Translated(To("en", {kPortuguese, "OK", "4711"}));
  EXPECT_EQ(answer.model(), "pt-en");
  EXPECT_EQ(answer.detected_language().language_code(), "pt");
  EXPECT_TRUE(answer.translations(0).has_detected_language());
  EXPECT_FALSE(answer.translations(2).has_detected_language());
}

TEST_F(MixedLanguagesTest, OnlyServedLanguageNeedsNoDetection) {
  Serve({{"de", "en"}});
  for (const char* text : {"4711", "Berlin", "OK"})
    EXPECT_EQ(Translated(To("en", {text})).model(), "de-en") << text;
}

TEST_F(MixedLanguagesTest, TextThatFitsSeveralLanguagesIsAnErrorWithTheWayOut) {
  Serve({{"de", "en"}, {"pt", "en"}});
  TranslateResponse response;
  const absl::Status status = Call(&TextCalls::Translate, To("en", {"4711"}), response);
  EXPECT_EQ(ErrorReason(status), "LANGUAGE_UNKNOWN");
  EXPECT_THAT(status.message(),
              HasSubstr("source_language_code: is not set and could not be detected from the text: "
                        "set it to one of de, pt, or name a model"));
}

TEST_F(MixedLanguagesTest, LanguageThatIsNotServedIsNamed) {
  Serve({{"de", "en"}, {"pt", "en"}});
  TranslateResponse response;
  const char* const finnish =
      "Vaikka Yhdysvaltojen siirtyminen digitaaliseen aikaan on ennennäkemätön.";
  const absl::Status status = Call(&TextCalls::Translate, To("en", {kGerman, finnish}), response);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("contents[1] seems to be in \"fi\": no model translates fi to en"));
  const auto message = [&](std::vector<std::string> texts) {
    return std::string(Call(&TextCalls::Translate, To("en", texts), response).message());
  };
  EXPECT_THAT(message({finnish}), HasSubstr("the text seems to be in \"fi\""));
  EXPECT_THAT(message({finnish, kGerman}), HasSubstr("contents[0] seems to be in \"fi\""));
  EXPECT_THAT(message({"4711", finnish}), HasSubstr("contents[1] seems to be in \"fi\""))
      << "the number is in the language of the others";
}

TEST_F(MixedLanguagesTest, VariantsFollowTheModels) {
  Serve({{"zh-Hans", "en"}, {"zh-Hant", "en"}, {"pt-PT", "en"}, {"pt-BR", "en"}});
  EXPECT_EQ(Translated(To("en", {"我們今天下午去圖書館看書，然後一起吃晚飯。"})).model(),
            "zh-hant-en");
  EXPECT_EQ(Translated(To("en", {"我们今天下午去图书馆看书，然后一起吃晚饭。"})).model(),
            "zh-hans-en");
  EXPECT_EQ(Translated(To("en", {"Onde está o seu gato preto?"})).model(), "pt-br-en");
  TranslateRequest request = To("en", {kPortuguese});
  for (const auto& [code, model] :
       std::vector<std::pair<std::string, std::string>>{{"pt", "pt-br-en"},
                                                        {"pt_PT.UTF-8", "pt-pt-en"},
                                                        {"zh_TW", "zh-hant-en"},
                                                        {"zh_CN", "zh-hans-en"},
                                                        {"zh-HK", "zh-hant-en"},
                                                        {"ZH", "zh-hans-en"}}) {
    request.set_source_language_code(code);
    EXPECT_EQ(Translated(request).model(), model) << code;
  }
}

TEST_F(MixedLanguagesTest, CodesAreReadAsWhatTheyMean) {
  Serve({{"he", "en"}, {"en", "id"}, {"nb", "en"}});
  for (const auto& [source, target] :
       std::vector<std::pair<std::string, std::string>>{{"iw", "en_US"},
                                                        {"IW_il", "EN"},
                                                        {"en_GB.UTF-8", "in"},
                                                        {"no", "en"},
                                                        {"nb_NO", "en"}}) {
    TranslateRequest request = To(target, {"4711"});
    request.set_source_language_code(source);
    TranslateResponse response;
    EXPECT_THAT(Call(&TextCalls::Translate, request, response), IsOk()) << source << " " << target;
  }
  for (const char* code : {"e", "en--US", "a b", "_", "123"}) {
    TranslateRequest request = To("en", {"4711"});
    request.set_source_language_code(code);
    TranslateResponse response;
    EXPECT_EQ(ErrorReason(Call(&TextCalls::Translate, request, response)), "BAD_LANGUAGE_CODE")
        << code;
  }
}

TEST_F(MixedLanguagesTest, FirstModelByNameAnswersAPairOfTwo) {
  test::WriteBundle(folder.path() / "x",
                    test::TinyManifest("b-first", linnet::v1::TASK_TRANSLATE, "de", "en"));
  test::WriteBundle(folder.path() / "y",
                    test::TinyManifest("a-second", linnet::v1::TASK_TRANSLATE, "de", "en"));
  ::testing::internal::CaptureStderr();
  Serve({{"pt", "en"}});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("pair_served_twice"));
  EXPECT_THAT(log, HasSubstr("a-second"));
  EXPECT_EQ(Translated(To("en", {kGerman})).model(), "a-second");
  TranslateResponse response;
  const absl::Status status = Call(&TextCalls::Translate, To("fr", {kGerman}), response);
  EXPECT_THAT(status.message(), HasSubstr("there is de to en, pt to en")) << "each pair once";
}

TEST_F(MixedLanguagesTest, StreamOfSeveralLanguagesSendsContentsInOrder) {
  Serve({{"de", "en"}, {"pt", "en"}});
  const TranslateRequest request =
      To("en", {kGerman + std::string(" Und der Hund?\n"), kEnglish, kPortuguese});
  const Received streamed = Stream(*calls, request);
  ASSERT_THAT(streamed.status, IsOk());
  int last = 0;
  for (const TextPart& part : streamed.parts) {
    EXPECT_GE(part.content_index(), last);
    last = part.content_index();
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(streamed.text(i), streamed.response.translations(i).text());
  EXPECT_EQ(streamed.parts.size(), 4) << "two sentences, the text that is unchanged, one sentence";
}

TEST_F(MixedLanguagesTest, OneLanguageThatIsRefusedFailsTheCall) {
  Serve({{"de", "en"}, {"pt", "en"}});
  std::string long_text;  // more work than the server gives a call
  for (int i = 0; i < 16000; ++i) long_text += std::string(kPortuguese) + " ";
  TranslateResponse response;
  const absl::Status status =
      Call(&TextCalls::Translate, To("en", {kGerman, long_text, kEnglish}), response);
  EXPECT_EQ(ErrorReason(status), "CALL_TOO_LARGE") << status;
  EXPECT_THAT(status.message(), HasSubstr("the call needs at least"));
  EXPECT_EQ(Translated(To("en", {kGerman})).model(), "de-en") << "and nothing is left of it";
}

TEST_F(MixedLanguagesTest, SummariesAreInTheLanguageOfTheirTexts) {
  Serve({{"de", "de"}, {"en", "en"}});
  SummarizeRequest request;
  request.add_contents(kEnglish);
  request.add_contents(kGerman);
  SummarizeResponse response;
  ASSERT_THAT(Call(&TextCalls::Summarize, request, response), IsOk());
  EXPECT_EQ(response.summaries(0).model(), "en-en");
  EXPECT_EQ(response.summaries(1).model(), "de-de");
  EXPECT_EQ(response.summaries(1).detected_language().language_code(), "de");
}

}  // namespace
}  // namespace linnet::server
