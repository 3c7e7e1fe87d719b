#include "model/runtime/text/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/runtime/text/abbreviation_lists.h"
#include "model/runtime/text/abbreviations.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAreArray;

struct Example {
  std::string language;
  std::vector<std::string> sentences;  // of the text, which is these joined
};

std::vector<std::string> Split(absl::string_view line, absl::string_view language) {
  const absl::StatusOr<std::vector<int>> ends = SentenceEnds(line, language);
  if (!ends.ok()) return {ends.status().ToString()};
  std::vector<std::string> sentences;
  int begin = 0;
  for (int end : *ends) {
    sentences.emplace_back(absl::StripSuffix(line.substr(begin, end - begin), " "));
    begin = end;
  }
  return sentences;
}

// clang-format off
const Example kExamples[] = {
    {"pt", {"O Sr. Silva chegou.", "Ele dormiu."}},
    {"pt", {"A Sra. Costa e o Dr. Lima falaram."}},
    {"pt", {"Foi em abril.", "Não elaborou."}},
    {"pt", {"O início de abril.", "Não elaborou o montante."}},
    {"pt", {"Ele mora no Brasil.", "Ela não."}},
    {"pt", {"Este é o final.", "Depois veio Portugal.", "Fim."}},
    {"pt", {"É difícil.", "Custa dez dólares.", "Pague."}},
    {"pt", {"Vi o mar.", "Gostei."}},
    {"fr", {"Le Dr. Martin est arrivé.", "Il dort."}},
    {"fr", {"M. Dupont et Mme. Roy parlent."}},
    {"fr", {"Il regarde la mer.", "Nous partons."}},
    {"fr", {"Il faut aimer.", "Marie le sait."}},
    {"fr", {"C'est le jeu.", "Paul perd."}},
    {"fr", {"Il va former.", "Et grandir.", "Voilà."}},
    {"fr", {"Ils sont sept.", "Elle part."}},
    {"es", {"El Sr. López vino.", "La Dra. Ruiz no."}},
    {"es", {"Bajo el árbol.", "Jugamos al fútbol.", "Vamos a tomar.", "Luego a llamar."}},
    {"es", {"Miró el mar.", "Volvió."}},
    {"it", {"Il sig. Rossi dorme.", "La dott.ssa Bianchi parla."}},
    {"it", {"Dice di non.", "Nessuno parla."}},
    {"nl", {"Dhr. Jansen kwam.", "Mevr. de Vries niet."}},
    {"nl", {"Dat kost 5 euro.", "Prof. Bakker zegt d.w.z. Jan."}},
    {"pl", {"To prof. Kowalski.", "Mieszka przy ul. Polnej."}},
    {"pl", {"Jan Kowalski, ur. 3. Maja, śpi."}},
    {"cs", {"Přišel prof. Novák.", "Bydlí v ul. Dlouhá."}},
    {"cs", {"Sešli se 3. Května.", "Potom spali."}},
    {"tr", {"Dr. Yılmaz geldi.", "Prof. Kaya gitti."}},
    {"tr", {"Bu 3. Sınıf bir iş."}},
    {"ru", {"Проф. Иванов пришёл.", "Он живёт на ул. Ленина."}},
    {"ru", {"Это А. С. Пушкин.", "Он писал."}},
    {"uk", {"Проф. Шевченко прийшов.", "Він спить."}},
    {"sv", {"Den 3. Maj kommer hon.", "Prof. Berg sover."}},
    {"da", {"Den 3. Maj kommer hun.", "Hr. Jensen sover."}},
    {"da", {"Den 3. maj kommer hun."}},
    {"nb", {"Den 3. Mai kommer hun."}},
    {"hu", {"Dr. Nagy megjött.", "Ő alszik."}},
    {"hu", {"Ez a 3. Oldal.", "A vége."}},
    {"hu", {"A II. Rákóczi Ferenc utca."}},
    {"fi", {"Hän tuli 3. Maaliskuuta.", "Prof. Virtanen nukkui."}},
    {"ja", {"「行こう。」と彼は言った。", "彼は帰った。"}},
    {"ja", {"「行こう。」って言った。", "ところが、雨だ。"}},
    {"ja", {"すごい!", "本当?", "はい。"}},
    {"ja", {"彼は言った。", "「行こう。」"}},
    {"de", {"Prof. Dr.-Ing. Schmidt kam.", "Er ging."}},
    {"de", {"Sie wohnt Hauptstr. 12 in Berlin.", "Dort ist es ruhig."}},
    {"de", {"Kunden-Nr. 4711 fehlt."}},
    {"de", {"Geöffnet Mo.-Fr. 9-17 Uhr.", "Sonst nicht."}},
    {"de", {"Sa. und So. 10-12 Uhr."}},
    {"en", {"Come at 10:00 a.m.", "Suitable for children."}},
    {"en", {"At 5 p.m. London sleeps."}},
    {"en", {"The bus leaves at 10:15 a.m. Monday to Friday."}},
    {"en", {"It opens at 9 a.m. EST on weekdays."}},
    {"en", {"He is no. 1.", "She is not."}},
    {"en", {"Order no. 4711.", "Thanks."}},
    {"en", {"See Sec. A for details.", "It is long."}},
    {"en", {"Tel. 555 is mine."}},
    {"en", {"See Vol. II of the book.", "It is long."}},
    {"en", {"iv. Remove the cover."}},
    {"en", {"iii. Remove the cover.", "iv. Close it."}},
    {"en", {"He said no.", "I think so."}},
    {"en", {"J. A. Smith came.", "He left."}},
    {"en", {"Wait…", "What is it?"}},
    {"en", {"The day was long.", "37 people came."}},
    {"en", {"They said it works.", "it does not."}},
    {"hi", {"डॉ. शर्मा आए।", "वे गए।"}},
    {"ar", {"وصل د. أحمد أمس."}},
    {"el", {"Ο κ. Παπαδόπουλος ήρθε.", "Κοιμάται."}},
    {"bg", {"Г-н Петров и проф. Иванов.", "Той спи."}},
    {"lt", {"A. Kubilius kalbėjo.", "Jis miega."}},
    {"lv", {"J. Bērziņš runāja.", "Viņš guļ."}},
    {"et", {"Dr. Tamm tuli.", "Ta magab."}},
    {"ro", {"Dl. Popescu a venit.", "El doarme."}},
    {"hr", {"Prof. Horvat je došao.", "On spava."}},
    {"ca", {"El Sr. Puig ha vingut.", "Dorm."}},
    {"id", {"Dr. Budi datang.", "Dia tidur."}},
    {"zh", {"他来了。", "“你好。”"}},
    {"uk", {"Це сталося 2016 р.", "Він спав."}},
    {"uk", {"Є три криві: А, Б та В.", "Крива А росте."}},
    {"uk", {"На 4–5% (наступного року. — Ред.).", "На мою думку, ні."}},
    {"de", {"Es gibt A, B und C.", "Kurve A steigt."}},
    {"en", {"It has parts A, B, C.", "Smith built it."}},
    {"en", {"Paul and I, J. Smith and B. Roy left."}},
    {"bg", {"Роден през 1998 г.", "Умрял рано."}},
    {"pl", {"Kupił za 30 tys. zł.", "Wiadomo doskonale."}},
    {"en", {"It was vitamin C.", "Then we left."}},
    {"en", {"Have you read it?", "[7] explains it."}},
    {"en", {"The tests pass. [7]", "The next step is harder."}},
    {"en", {"She stopped.", "- Why did you come?", "- To see you."}},
    {"en", {"Nice work :)", "See you."}},
    {"en", {"\"Are you there?\" she asked.", "\"Yes!\""}},
    {"en", {"Use main.py.", "Then stop."}},
    {"en", {"Apples, oranges etc.", "Robots like none."}},
    {"de", {"Am 3. Oktober ist frei.", "Er kam z. B. Dienstag."}},
    {"et", {"“Ma tulen. ”", "Ta läks."}},
    {"nl", {"Hij was moe.", ",, Ik ga nu. ''", "Daarna sliep hij."}},
    {"fr", {"« Il dort. »", "Elle part."}},
    {"nb", {"Hva må du trene på da? spør pappa.", "Alt."}},
    {"tr", {"Bir bardak su var mı? diye sordu.", "Hayır."}},
    {"cs", {"\"Co to děláš?\" křičel žák.", "Nic."}},
    {"pl", {"Mowa o tym w art. 17 ust. 2 Konwencji.", "Jan wie."}},
    {"it", {"Lo dice l'art. 57.", "Gli altri tacciono."}},
    {"pt", {"Veja a pág. 51.", "Este assunto acabou."}},
    {"sk", {"Platí od 21. 4. do 21. 5.", "Potom nie."}},
    {"hr", {"Igrao je Benedikt XVI.", "Papa je bio tamo."}},
    {"lt", {"Skirta 54 mlrd. EUR paramos.", "Tai daug."}},
    {"he", {"הוא אמר א. ב. יהושע.", "היא שמעה."}},
};
// clang-format on

class SentenceEndsTest : public ::testing::TestWithParam<Example> {};

TEST_P(SentenceEndsTest, AreWhereAReaderSeesThem) {
  const auto& [language, sentences] = GetParam();
  const char* blank = language == "ja" || language == "zh" ? "" : " ";
  const std::string line = absl::StrJoin(sentences, blank);
  EXPECT_THAT(Split(line, language), ElementsAreArray(sentences)) << language << ": " << line;
}

INSTANTIATE_TEST_SUITE_P(Everyday, SentenceEndsTest, ::testing::ValuesIn(kExamples),
                         [](const auto& info) {
                           return info.param.language + std::to_string(info.index);
                         });

// CLDR's suppressions must not be matched as the ends of longer words, as ICU's own filter does.
TEST(SentenceEndsTest, WordsThatEndLikeAnAbbreviationEndSentences) {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"pt", "abril Brasil final Portugal difícil dólares local mar jornal papel"},
      {"es", "árbol fútbol llamar tomar mar español hospital"},
      {"fr", "mer aimer former grandir jeu enjeu sept bleu hiver"},
      {"it", "non bar"},
      {"en", "no"},
      {"ru", "завод народ"},
  };
  for (const auto& [language, list] : words) {
    for (absl::string_view word : absl::StrSplit(list, ' ')) {
      const std::vector<std::string> sentences = {absl::StrCat("Abc defg ", word, "."),
                                                  "Xyzab cde."};
      EXPECT_THAT(Split(absl::StrJoin(sentences, " "), language), ElementsAreArray(sentences));
    }
  }
}

TEST(AbbreviationsTest, ListsHaveWholeEntriesOnce) {
  std::set<std::string> languages;
  for (const auto lists : {WesternAbbreviations(), EasternAbbreviations()}) {
    for (const AbbreviationLists& list : lists) {
      EXPECT_TRUE(languages.emplace(list.language).second) << list.language;
      std::set<absl::string_view> seen;
      for (absl::string_view words :
           {list.never_last, list.seldom_last, list.before_number, list.closing, list.measures}) {
        for (absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
          EXPECT_TRUE(absl::EndsWith(word, ".")) << word;
          EXPECT_TRUE(seen.insert(word).second) << list.language << " has twice: " << word;
        }
      }
    }
  }
  EXPECT_GE(languages.size(), 25);
}

TEST(AbbreviationsTest, CountTheirKindByWholeWords) {
  const Abbreviations& german = Abbreviations::Of("de");
  EXPECT_EQ(german.KindOf("Dr."), Abbreviations::Kind::kNeverLast);
  EXPECT_EQ(german.KindOf("Kunden-Nr."), Abbreviations::Kind::kNeverLast);
  EXPECT_EQ(german.KindOf("Hauptstr."), Abbreviations::Kind::kBeforeNumber);
  EXPECT_EQ(german.KindOf("VGL."), Abbreviations::Kind::kNeverLast);
  EXPECT_EQ(german.KindOf("Adr."), Abbreviations::Kind::kNone);
  const Abbreviations& portuguese = Abbreviations::Of("pt");
  EXPECT_EQ(portuguese.KindOf("abril."), Abbreviations::Kind::kNone);
  EXPECT_EQ(portuguese.KindOf("matem."), Abbreviations::Kind::kSeldomLast) << "of CLDR";
  EXPECT_TRUE(Abbreviations::Of("da").IsMonth("Maj"));
  EXPECT_EQ(&Abbreviations::Of("tlh"), &Abbreviations::Of("no language"));
}

}  // namespace
}  // namespace linnet::model
