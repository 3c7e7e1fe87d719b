#include "model/runtime/tokenizer/terms.h"

#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The number of each term found in the text, with its occurrence.
std::vector<std::tuple<int, std::string>> Found(const std::vector<std::string>& terms,
                                                const std::string& text, bool ignore_case = false) {
  std::vector<std::tuple<int, std::string>> found;
  int end = 0;
  for (const TermPlace& place : TermFinder(terms, ignore_case).Find(text)) {
    EXPECT_GE(place.begin, end) << "places overlap, or are out of order";
    end = place.end;
    found.emplace_back(place.term, text.substr(place.begin, place.end - place.begin));
  }
  return found;
}

using Place = std::tuple<int, std::string>;

TEST(TermFinderTest, FindsTermsAsWholeWords) {
  EXPECT_THAT(Found({"dog"}, "dog, Dog: dogs (dog) hotdog dog"),
              ElementsAre(Place(0, "dog"), Place(0, "dog"), Place(0, "dog")));
  EXPECT_THAT(Found({"dog"}, ""), IsEmpty());
  EXPECT_THAT(Found({"\xC3\xBC"}, "f\xC3\xBCr \xC3\xBC \xC3\xBC\x62"),
              ElementsAre(Place(0, "\xC3\xBC")));
}

TEST(TermFinderTest, FindsLongestTermWithoutOverlap) {
  EXPECT_THAT(Found({"hot", "hot dog", "dog", "dog stand"}, "a hot dog stand and a dog, hot"),
              ElementsAre(Place(1, "hot dog"), Place(2, "dog"), Place(0, "hot")));
}

TEST(TermFinderTest, TakesAShorterTermWhereTheLongerOneEndsInAWord) {
  EXPECT_THAT(Found({"hot dog", "hot"}, "hot dogs"), ElementsAre(Place(1, "hot")));
}

TEST(TermFinderTest, PartsGiveTheTermsOfTheWhole) {
  const std::string text =
      "the dog runs, the dogs and the dog run: dog\xE4\xBA\xAC\xE4\xBA\xAC the dog";
  const TermFinder finder({"dog", "the dog runs", "dog run", "\xE4\xBA\xAC"}, false);
  const auto whole = finder.Find(text);
  ASSERT_GT(whole.size(), 4);
  for (const int64_t step : {1, 2, 7, 30}) {
    std::vector<TermPlace> places;
    int parts = 0;
    for (int at = 0; at < std::ssize(text); ++parts) {
      int64_t work = step;
      at = finder.FindPart(text, at, work, places);
    }
    EXPECT_GT(parts, std::ssize(text) / (step + 16));
    ASSERT_EQ(places.size(), whole.size()) << step;
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(places[i].begin, whole[i].begin);
      EXPECT_EQ(places[i].end, whole[i].end);
      EXPECT_EQ(places[i].term, whole[i].term);
    }
  }
}

TEST(TermFinderTest, OfTermsThatFoldToTheSameTheFirstIsFound) {
  EXPECT_THAT(Found({"Dog", "dog"}, "DOG", /*ignore_case=*/true), ElementsAre(Place(0, "DOG")));
}

TEST(TermFinderTest, TermsOfMarksMatchNextToLetters) {
  EXPECT_THAT(Found({"C++", "--", ".NET"}, "C++11 a--b x.NET .NETs"),
              ElementsAre(Place(0, "C++"), Place(1, "--"), Place(2, ".NET")));
}

TEST(TermFinderTest, FindsTermsAmongLettersOfUnspacedScripts) {
  EXPECT_THAT(Found({"東京"}, "私は東京に住む。東京タワー"),
              ElementsAre(Place(0, "東京"), Place(0, "東京")));
  EXPECT_THAT(Found({"Linnet", "模型"}, "用Linnet模型翻译2个Linnets"),
              ElementsAre(Place(0, "Linnet"), Place(1, "模型")));
  EXPECT_THAT(Found({"แมว"}, "ฉันรักแมวมาก"), ElementsAre(Place(0, "แมว")));
  EXPECT_THAT(Found({"서울"}, "서울에 서울"), ElementsAre(Place(0, "서울")))
      << "Korean puts blanks between words";
}

TEST(TermFinderTest, CombiningMarksBelongToTheirLetter) {
  EXPECT_THAT(Found({"राम"}, "रामा राम"), ElementsAre(Place(0, "राम")));
  EXPECT_THAT(Found({"ก"}, "กิ ก"), ElementsAre(Place(0, "ก")));
  EXPECT_THAT(Found({"cafe"}, "cafe\u0301 cafe"), ElementsAre(Place(0, "cafe")));
}

TEST(TermFinderTest, EndsInWordDependsOnTheScript) {
  for (const char* text : {"dog", "C3", "用Linnet", "서울", "राम"})
    EXPECT_TRUE(EndsInWord(text)) << text;
  for (const char* text : {"", "C++", "東京", "แมว", "Linnet模型", "."})
    EXPECT_FALSE(EndsInWord(text)) << text;
}

TEST(TermFinderTest, MatchesCaseUnlessIgnored) {
  const std::string text = "\xC3\x84rger \xC3\xA4rger \xC3\x84RGER";
  EXPECT_THAT(Found({"\xC3\xA4rger"}, text), ElementsAre(Place(0, "\xC3\xA4rger")));
  EXPECT_THAT(
      Found({"\xC3\xA4rger"}, text, true),
      ElementsAre(Place(0, "\xC3\x84rger"), Place(0, "\xC3\xA4rger"), Place(0, "\xC3\x84RGER")));
  // The Kelvin sign folds to a letter that is two bytes shorter.
  EXPECT_THAT(Found({"5 k"}, "5 \xE2\x84\xAA!", true), ElementsAre(Place(0, "5 \xE2\x84\xAA")));
}

TEST(FoldCaseTest, FoldsEachCharacter) {
  EXPECT_EQ(FoldCase("Straße ÄÖ Σίσυφος"), FoldCase("STRAßE äö ΣΊΣΥΦΟΣ"));
  EXPECT_NE(FoldCase("straße"), FoldCase("STRASSE"));
  EXPECT_EQ(FoldCase(""), "");
}

}  // namespace
}  // namespace linnet::model
