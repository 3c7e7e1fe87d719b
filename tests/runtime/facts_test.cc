#include "model/runtime/text/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What only the source and only the answer has, with | between.
std::string Differences(const std::string& source, const std::string& answer,
                        const char* languages = "en-de", bool whole = true) {
  const std::string from(languages, 2), to(languages + 3);
  const FactDifferences differences = CompareFacts({source, from}, {answer, to}, whole);
  std::string found;
  for (const auto& [begin, end] : differences.lost)
    found += source.substr(begin, end - begin) + " ";
  found += "|";
  for (const auto& [begin, end] : differences.added)
    found += " " + answer.substr(begin, end - begin);
  return found;
}

TEST(FactsTest, NumbersAreComparedByValue) {
  EXPECT_EQ(Differences("It costs 1,234.56.", "Es kostet 1.234,56."), "|");
  EXPECT_EQ(Differences("1,000,000 people", "1.000.000 Menschen"), "|");
  EXPECT_EQ(Differences("10 000 people", "10.000 Menschen"), "|");
  EXPECT_EQ(Differences("1.500 kg", "1,5 kg"), "|");
  EXPECT_EQ(Differences("on 12/05/2024", "am 12.05.2024"), "|");
  EXPECT_EQ(Differences("at 10:30", "um 10.30 Uhr"), "|");
  EXPECT_EQ(Differences("٣٫١٤ and ５", "3,14 und 5"), "|") << "digits of other scripts";
  EXPECT_EQ(Differences("007", "7"), "|");
  EXPECT_EQ(Differences("5 million", "5.000.000"), "|");
  EXPECT_EQ(Differences("1.5 million", "1.500.000"), "|");
  EXPECT_EQ(Differences("at 2 pm", "um 14 Uhr"), "|");
  EXPECT_EQ(Differences("at 7 a.m.", "um 7:00 Uhr"), "|");
  EXPECT_EQ(Differences("at 3 p.m.", "um 15:00 Uhr"), "|");
  EXPECT_EQ(Differences("at 3 p.m.", "um 15:30 Uhr"), "| 15:30");
}

TEST(FactsTest, LostAndAddedNumbersAreFound) {
  EXPECT_EQ(Differences("I have 3 cats and 2 dogs.", "Ich habe Katzen und 2 Hunde."), "3 |");
  EXPECT_EQ(Differences("5 and 5", "5"), "5 |");
  EXPECT_EQ(Differences("costs 40", "kostet 400"), "40 | 400");
  EXPECT_EQ(Differences("1,234", "1.243"), "1,234 | 1.243");
  EXPECT_EQ(Differences("a", "a 12"), "| 12");
  EXPECT_EQ(Differences("1.000.000 dogs", "1.000.000.000 Hunde"), "1.000.000 | 1.000.000.000");
}

TEST(FactsTest, TimesAndRatiosAreComparedAsAWhole) {
  EXPECT_EQ(Differences("at 10:00:00", "um 10:00 Uhr"), "10:00:00 | 10:00");
  EXPECT_EQ(Differences("at 10:00:00", "um 10 Uhr"), "10:00:00 |");
  EXPECT_EQ(Differences("1:30:00 long", "1:30 lang"), "1:30:00 | 1:30");
  EXPECT_EQ(Differences("16:9", "9:16"), "16:9 | 9:16");
  EXPECT_EQ(Differences("a ratio of 16:9", "ein Verhältnis von 16.9"), "16:9 | 16.9");
  EXPECT_EQ(Differences("at 10:00:00", "um 10.00 Uhr"), "10:00:00 |");
  EXPECT_EQ(Differences("from 10:30 to 11:45", "von 10:45 bis 11:30"), "10:30 11:45 | 10:45 11:30");
  EXPECT_EQ(Differences("at 10:30", "um 10:03 Uhr"), "10:30 | 10:03");
}

TEST(FactsTest, TimesMayBeWrittenInAnotherWay) {
  for (const char* answer :
       {"um 10:00 Uhr", "um 10 Uhr", "um 10.00 Uhr", "um 22:00 Uhr", "um 22 Uhr", "um zehn Uhr"})
    EXPECT_EQ(Differences("at 10:00", answer), "|") << answer;
  EXPECT_EQ(Differences("at 3:30 p.m.", "um 15:30 Uhr"), "|");
  EXPECT_EQ(Differences("at 3:30 p.m.", "um 15.30 Uhr"), "|");
  EXPECT_EQ(Differences("um 15.30 Uhr", "at 3:30 p.m.", "de-en"), "|");
  EXPECT_EQ(Differences("10:00-12:30", "10-12.30 Uhr"), "|");
  EXPECT_EQ(Differences("00:05:00 of 1:30:00", "5:00 von 01:30:00"), "|");
  EXPECT_EQ(Differences("John 3:16", "Johannes 3,16"), "|");
  EXPECT_EQ(Differences("a map of 1:25,000", "eine Karte 1:25.000"), "|");
  EXPECT_EQ(Differences("Chapter 5: 10 rules", "Kapitel 5: 10 Regeln"), "|");
  EXPECT_EQ(Differences("at 2:30", "um halb drei"), "|");
  EXPECT_EQ(Differences("at 12:30", "um halb eins"), "|");
  EXPECT_EQ(Differences("at half past two", "um 14:30 Uhr"), "|");
  EXPECT_EQ(Differences("at quarter to three", "um 2:45 Uhr"), "|");
  EXPECT_EQ(Differences("on May 30", "in diesem Halbjahr"), "30 |");
  EXPECT_EQ(Differences("within 30 days", "innerhalb von Tagen"), "30 |");
  EXPECT_EQ(Differences("at 2:30", "um halb vier"), "2:30 |");
  EXPECT_EQ(Differences("lasts 1:30:00", "dauert 1 h 30 min 0 s"), "|");
}

TEST(FactsTest, NumbersMayBeWrittenInWords) {
  EXPECT_EQ(Differences("2 dogs", "zwei Hunde"), "|");
  EXPECT_EQ(Differences("two dogs", "2 Hunde"), "|");
  EXPECT_EQ(Differences("12 dogs", "doze cães", "en-pt"), "|");
  EXPECT_EQ(Differences("my 3rd dog", "mein dritter Hund"), "|");
  EXPECT_EQ(Differences("2 dogs", "drei Hunde"), "2 |");
}

TEST(FactsTest, BracketsAndQuotationMarksAreCounted) {
  EXPECT_EQ(Differences("\"Yes\" (he said)", "„Ja“ (sagte er)"), "|");
  EXPECT_EQ(Differences("He said (no).", "Er sagte nein."), "( ) |");
  EXPECT_EQ(Differences("He said \"no\".", "Er sagte „nein.“ „“"), "| „ “");
  EXPECT_EQ(Differences("(no)", "（nein）"), "|");
}

TEST(FactsTest, QuotationMarksMayBeSingle) {
  EXPECT_EQ(Differences("to 'feel the heat' of it", "die „Hitze spüren“"), "|");
  EXPECT_EQ(Differences("\"Yes\", he said.", "‚Ja‘, sagte er."), "|");
  EXPECT_EQ(Differences("It's Anna's", "„Es“ gehört Anna"), "| „ “") << "apostrophes";
  EXPECT_EQ(Differences("'Yes' and \"no\"", "‚Ja‘ und nein"), "\" \" |");
}

TEST(FactsTest, PlacesApartAreNotCompared) {
  const std::string source = "Call {0} at 5", answer = "Rufen Sie {0} um 5 an";
  FactText read = {source, "en", {{5, 8}}}, written = {answer, "de", {{10, 13}}};
  EXPECT_THAT(CompareFacts(read, written).lost, IsEmpty());
  written = {"Rufen Sie um 5 an", "de"};
  EXPECT_THAT(CompareFacts(read, written).lost, IsEmpty());
  EXPECT_THAT(CompareFacts({source, "en"}, written).lost,
              ElementsAre(TextRun{5, 6}, TextRun{6, 7}, TextRun{7, 8}));
}

TEST(FactsTest, SummaryMayLeaveOutWhatItDoesNotAdd) {
  EXPECT_EQ(Differences("3 cats, 2 dogs (old)", "2 dogs and 2 \"pets\"", "en-en", false), "|");
  EXPECT_EQ(Differences("3 cats, 2 dogs", "7 pets", "en-en", false), "| 7");
}

}  // namespace
}  // namespace linnet::model
