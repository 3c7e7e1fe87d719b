// Detection of texts in another language than their model reads.
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/request/language_detector.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::HasSubstr;

struct Sample {
  const char *language, *text;
};
constexpr Sample kSamples[] = {
    {"ar", "ذهب الأولاد إلى المدرسة في الصباح الباكر."},
    {"de", "Die Kinder gehen früh am Morgen zur Schule."},
    {"el", "Τα παιδιά πηγαίνουν στο σχολείο νωρίς το πρωί."},
    {"en", "The children walk to school early in the morning."},
    {"es", "Los niños van a la escuela por la mañana temprano."},
    {"fr", "Les enfants vont à l'école tôt le matin."},
    {"he", "הילדים הולכים לבית הספר מוקדם בבוקר."},
    {"ja", "子供たちは朝早く学校へ行きます。"},
    {"ko", "아이들은 아침 일찍 학교에 갑니다."},
    {"ru", "Дети идут в школу рано утром."},
    {"tr", "Çocuklar sabah erkenden okula gidiyorlar."},
    {"zh", "我们今天下午去图书馆看书，然后一起吃晚饭。"},
};

TEST(OtherLanguageTest, DetectsLanguageOfSentences) {
  for (const Sample& sample : kSamples) {
    for (const Sample& other : kSamples) {
      const auto seen = OtherLanguage(sample.text, other.language);
      if (&other == &sample) {
        EXPECT_EQ(seen, std::nullopt) << sample.text;
      } else {
        ASSERT_TRUE(seen.has_value()) << sample.text << " for " << other.language;
        EXPECT_EQ(seen->code.substr(0, 2), sample.language);
      }
    }
  }
}

TEST(OtherLanguageTest, IgnoresRegionScriptAndCaseOfCodes) {
  for (const char* code : {"en", "EN", "en-GB", "en_US", "En-Latn-US"})
    EXPECT_EQ(OtherLanguage(kSamples[3].text, code), std::nullopt) << code;
  for (const char* code : {"zh-Hant", "zh-TW", "cmn"})
    EXPECT_EQ(OtherLanguage(kSamples[11].text, code), std::nullopt) << code;
  const char* norwegian = "Barna går til skolen tidlig om morgenen, og foreldrene drar på jobb.";
  for (const char* code : {"no", "nb", "nn"})
    EXPECT_EQ(OtherLanguage(norwegian, code), std::nullopt) << code;
  EXPECT_EQ(OtherLanguage(kSamples[6].text, "iw"), std::nullopt) << "as Hebrew was called before";
}

std::string Chosen(const char* text, const std::vector<std::string>& candidates) {
  const LanguageChoice choice = ChooseLanguage(text, candidates);
  return choice.reliable ? choice.code : "not reliable";
}

TEST(ChooseLanguageTest, FewWordsAreEnoughAmongTheLanguagesThatAreServed) {
  const std::vector<std::string> two = {"de", "pt"}, five = {"de", "en", "fr", "pt", "ru"};
  for (const auto& candidates : {two, five}) {
    EXPECT_EQ(Chosen("Guten Tag", candidates), "de");
    EXPECT_EQ(Chosen("Onde está o gato?", candidates), "pt");
    EXPECT_EQ(Chosen("Olá", candidates), "pt") << "no other language has the letter";
  }
  EXPECT_EQ(Chosen("Где кошка?", five), "ru");
  EXPECT_EQ(Chosen("שלום", {"he", "de"}), "he");
  EXPECT_EQ(Chosen("こんにちは", {"zh", "ja"}), "ja");
}

TEST(ChooseLanguageTest, TextThatFitsSeveralIsNotReliable) {
  for (const char* text : {"", "4711", "!?", "OK", "Onde está o gato?"})
    EXPECT_EQ(Chosen(text, {"pt", "es"}), "not reliable") << text;
  EXPECT_EQ(ChooseLanguage("Guten Tag", {}).code, "");
}

TEST(ChooseLanguageTest, ConfidenceIsThatAmongTheCandidates) {
  EXPECT_GT(ChooseLanguage("Guten Tag", {"de", "pt"}).confidence, 0.99f);
  EXPECT_NEAR(ChooseLanguage("4711", {"de", "pt"}).confidence, 0.5f, 1e-6);
  EXPECT_NEAR(ChooseLanguage("4711", {"de", "pt", "en", "fr"}).confidence, 0.25f, 1e-6);
}

TEST(ChooseLanguageTest, VarietiesOfALanguageDoNotCompete) {
  EXPECT_EQ(Chosen("Onde está o gato preto?", {"pt-PT", "pt-BR", "de"}), "pt-BR");
  EXPECT_EQ(Chosen("我們今天下午去圖書館看書", {"zh-Hans", "zh-Hant", "en"}), "zh-Hant");
  EXPECT_EQ(Chosen("我们今天下午去图书馆看书", {"zh-Hans", "zh-Hant", "en"}), "zh-Hans");
  EXPECT_EQ(Chosen("我們今天下午去圖書館看書", {"zh", "en"}), "zh");
  EXPECT_EQ(Chosen("Barna går til skolen tidlig", {"en", "nb"}), "nb");
  EXPECT_EQ(Chosen("Deca idu u školu rano ujutru.", {"en", "sr-Cyrl", "sr-Latn"}), "sr-Latn");
  EXPECT_EQ(Chosen("Деца иду у школу рано ујутру.", {"en", "sr-Cyrl", "sr-Latn"}), "sr-Cyrl");
}

TEST(ChooseLanguageTest, TextInNoneOfTheCandidatesIsNamed) {
  const LanguageChoice choice =
      ChooseLanguage("Vaikka siirtyminen digitaaliseen aikaan on ennennäkemätön.", {"de", "en"});
  ASSERT_TRUE(choice.other.has_value());
  EXPECT_EQ(choice.other->code, "fi");
  EXPECT_FALSE(choice.reliable);
  // A few words are not enough for that.
  EXPECT_FALSE(ChooseLanguage("Onde está o gato?", {"de", "en"}).other.has_value());
}

TEST(DetectLanguageTest, FewWordsAreNotReliablyInALanguageThatFitsThemLess) {
  EXPECT_FALSE(DetectLanguage("Onde está o gato?").reliable) << "Kinyarwanda, says CLD2";
  EXPECT_EQ(OtherLanguage("Onde está o gato?", "pt"), std::nullopt);
}

TEST(OtherLanguageTest, UnreliableTextIsNoOtherLanguage) {
  for (const char* text : {"", "12345", "!?", "Berlin", "OK", "https://linnet.example/a?b=c",
                           "The word \"Straßenbahnhaltestelle\" is a German one."})
    EXPECT_EQ(OtherLanguage(text, "en"), std::nullopt) << text;
}

TextFixture FixtureThat(LanguageCheck check) {
  return TextFixture({}, {}, TextLimits{.language_check = check});
}

const char* const kGerman = "Der Hund bellt laut auf der Straße.";
const char* const kEnglish = "The dog barks loudly in the street.";

TEST(LanguageCheckTest, OtherLanguageGetsAWarning) {
  TextFixture fixture;  // warns by default
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({kEnglish, kGerman}), response), IsOk());
  EXPECT_EQ(response.translations(0).warnings_size(), 0);
  ASSERT_EQ(response.translations(1).warnings_size(), 1);
  const linnet::v1::Warning& warning = response.translations(1).warnings(0);
  EXPECT_EQ(warning.reason(), "LANGUAGE_MISMATCH");
  EXPECT_EQ(warning.message(), "text seems to be in \"de\", model \"en-de\" reads \"en\"");
  EXPECT_EQ(warning.metadata().at("detectedLanguage"), "de");
  EXPECT_EQ(warning.metadata().at("modelLanguage"), "en");
  EXPECT_EQ(response.translations(1).text(), kGerman) << "and is the answer all the same";
  SummarizeResponse summary;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, SummaryOf(kGerman), summary), IsOk());
  EXPECT_EQ(summary.summaries(0).warnings_size(), 1);
}

TEST(LanguageCheckTest, CheckCanRefuseOrBeOff) {
  TextFixture refusing = FixtureThat(LanguageCheck::kRefuse),
              blind = FixtureThat(LanguageCheck::kOff);
  TranslateResponse response;
  const TranslateRequest mixed = ToGerman({kEnglish, kGerman});
  const absl::Status status = refusing.Call(&TextCalls::Translate, mixed, response);
  EXPECT_EQ(ErrorReason(status), "LANGUAGE_MISMATCH") << status;
  EXPECT_THAT(status.message(), HasSubstr("contents[1]: text seems to be in \"de\""));
  EXPECT_THAT(refusing.Call(&TextCalls::Translate, ToGerman({kEnglish}), response), IsOk());
  response.Clear();
  ASSERT_THAT(blind.Call(&TextCalls::Translate, mixed, response), IsOk());
  for (const auto& translation : response.translations()) EXPECT_EQ(translation.warnings_size(), 0);
}

TEST(LanguageCheckTest, ScoringIsNotChecked) {
  TextFixture fixture = FixtureThat(LanguageCheck::kRefuse);
  linnet::v1::ScoreRequest request;
  request.set_source_language_code("en");
  request.set_target_language_code("de");
  request.add_pairs()->set_source_text(kGerman);
  request.mutable_pairs(0)->set_target_text(kGerman);
  linnet::v1::ScoreResponse response;
  EXPECT_THAT(fixture.Call(&TextCalls::Score, request, response), IsOk());
}

}  // namespace
}  // namespace linnet::server
