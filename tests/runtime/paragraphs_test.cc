#include "model/runtime/text/paragraphs.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace linnet::model {
namespace {

std::string Joined(absl::string_view text) { return JoinParagraphs(text).text(); }

// A block of the width 60 whose lines are as `lines` from its second on.
const std::string kWide = "This is a line of the width sixty, which a mail program cut";

TEST(ParagraphsTest, LinesOfAParagraphAreJoined) {
  EXPECT_EQ(
      Joined("The quick brown fox jumps over the lazy dog\nand the dog does not even look up from "
             "its\n"
             "place.\n\nA second paragraph.\n"),
      "The quick brown fox jumps over the lazy dog and the dog does not even look up from its "
      "place.\n\nA second paragraph.\n");
  EXPECT_EQ(Joined(kWide + "  \r\n  \r\n"), kWide + "  \r\n  \r\n");
  EXPECT_EQ(Joined(kWide + " \r\n" + kWide + "\r\n"), kWide + " " + kWide + "\r\n");
  EXPECT_EQ(Joined(kWide + "\nend"), kWide + " end");
}

TEST(ParagraphsTest, TextThatIsNotWrappedStaysAsItIs) {
  for (const std::string& text :
       {std::string(), std::string("\n\n"), std::string("one line"),
        std::string("John Smith\n12 Main Street\nSpringfield\n"),
        std::string(
            "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate\n"),
        std::string(170, 'x') + " y\n" + std::string(165, 'x') + " z\nend\n",
        std::string("a\tb\n") + kWide + "\tc\n"}) {
    EXPECT_EQ(Joined(text), text);
  }
}

TEST(ParagraphsTest, ParagraphEndsWithoutBlankLine) {
  // A short line, list items, another indentation, marks, lines without a letter.
  for (const std::string next :
       {"- item", "* item", "• item", "1. item", "12) item", "(a) item", "b) item", "> quoted",
        "# heading", "| cell", "---", "12:30 - 14:00", "    indented more"}) {
    const std::string text = kWide + "\n" + next + "\n";
    EXPECT_EQ(Joined(text), text);
  }
  EXPECT_EQ(Joined("Dear all,\n" + kWide + "\nmore\n"), "Dear all,\n" + kWide + " more\n");
  EXPECT_EQ(Joined(kWide + "\nshort.\n" + kWide + "\n"), kWide + " short.\n" + kWide + "\n");
  for (const std::string next :
       {"A. Smith came", "1999. In that year", "5 kg of it", "-ness", "a.m. or"})
    EXPECT_EQ(Joined(kWide + "\n" + next), kWide + " " + next) << "is no item";
}

TEST(ParagraphsTest, ItemsAndFirstLinesMayBeIndentedInTheirOwnWay) {
  EXPECT_EQ(Joined("- " + kWide + "\n  and on\n- " + kWide + "\nlazily\n"),
            "- " + kWide + " and on\n- " + kWide + " lazily\n");
  EXPECT_EQ(Joined("    " + kWide + "\n" + kWide + "\nend.\n    " + kWide + "\nend.\n"),
            "    " + kWide + " " + kWide + " end.\n    " + kWide + " end.\n");
  const std::string deeper = kWide + "\n" + kWide + "\n  " + kWide + "\n";
  EXPECT_EQ(Joined(deeper), kWide + " " + kWide + "\n  " + kWide + "\n");
}

TEST(ParagraphsTest, HyphensAtLineEnds) {
  const std::string line = "This is a line of some width, which ends in the word ";
  const auto joint = [&](const std::string& end, const std::string& begin,
                         const std::string& more = "") {
    const std::string text = line + end + "\n" + begin + " of it" + more;
    std::string joined = Joined(text);
    EXPECT_TRUE(absl::StartsWith(joined, line)) << joined;
    return joined.substr(line.size());
  };
  EXPECT_EQ(joint("exam-", "ple"), "example of it");
  EXPECT_EQ(joint("Stra\u00DFen-", "bahn"), "Straßenbahn of it");
  EXPECT_EQ(joint("exam\u00AD", "ple"), "example of it");
  EXPECT_EQ(joint("exam\u2010", "ple"), "example of it");
  EXPECT_EQ(joint("well-", "known", ", a well-known one"), "well-known of it, a well-known one");
  EXPECT_EQ(joint("Nord-", "Süd"), "Nord-Süd of it");
  EXPECT_EQ(joint("COVID-", "19"), "COVID-19 of it");
  EXPECT_EQ(joint("Haus-", "und"), "Haus- und of it");
  EXPECT_EQ(joint("dash -", "then"), "dash - then of it");
  EXPECT_EQ(joint("dash --", "then"), "dash -- then of it");
}

TEST(ParagraphsTest, ScriptsWithoutBlanksAreJoinedByNothing) {
  const std::string chinese = "我们今天下午去图书馆看书然后一起吃晚饭再去看电影吧";
  EXPECT_EQ(Joined(chinese + "\n好的。"), chinese + "好的。");
  EXPECT_EQ(Joined("　　" + chinese + "，\n" + chinese + "。\n　　" + chinese + "。"),
            "　　" + chinese + "，" + chinese + "。\n　　" + chinese + "。");
  EXPECT_EQ(Joined(chinese + "\nLinux"), chinese + "Linux");
  const std::string korean = "아이들은 아침 일찍 학교에 갑니다 그리고 저녁에 집에 돌아와";
  EXPECT_EQ(Joined(korean + "\n숙제를 합니다."), korean + " 숙제를 합니다.");
}

TEST(ParagraphsTest, BlocksAreIndependent) {
  const std::vector<std::string> blocks = {
      kWide + "\nmore\n\n", "a\nb\n \n", "- " + kWide + "\n  c\n\n\n", kWide + " well-\nknown\n\n"};
  for (const std::string& first : blocks) {
    for (const std::string& second : blocks)
      EXPECT_EQ(Joined(first + second), Joined(first) + Joined(second));
  }
}

// All characters but hyphens and white space stay, in order and at their place.
TEST(ParagraphsTest, RangesAreThoseOfTheSource) {
  std::mt19937 random(5);
  const std::vector<std::string> words = {"word",       "exam-",  "ple",   "a",        "é",
                                          "世界",       "。",     "und",   "1.",       "- x",
                                          "long\u00AD", "\u00A0", "12:30", "sentence."};
  const std::vector<std::string> gaps = {" ", "\n", "\n", "\r\n", "\n  ", "\n\n", "  ", "\t"};
  int joins = 0;
  for (int run = 0; run < 300; ++run) {
    std::string text;
    for (int word = 0; word < 80; ++word) {
      text += words[random() % words.size()];
      text += word % 9 == 8 ? gaps[random() % gaps.size()] : " ";
    }
    const JoinedText joined = JoinParagraphs(text);
    joins += static_cast<int>(joined.text() != text);
    EXPECT_LE(joined.bytes(), JoinedText::MaxBytes(text));
    ParagraphJoiner joiner(text);
    while (!joiner.done()) joiner.Step(1 + static_cast<int64_t>(random() % 20));
    EXPECT_EQ(joiner.Take().text(), joined.text());
    const auto kept = [](const std::string& some) {
      return absl::StrReplaceAll(
          some, {{" ", ""}, {"\n", ""}, {"\r", ""}, {"-", ""}, {"\u00AD", ""}, {"\u00A0", ""}});
    };
    EXPECT_EQ(kept(joined.text()), kept(text));
    int last = 0;
    for (int at = 0; at < std::ssize(joined.text()); ++at) {
      const auto [begin, end] = joined.SourceOf(at, at + 1);
      ASSERT_GE(begin, last);
      ASSERT_EQ(end, begin + 1);
      last = begin;
      if (joined.text()[at] != ' ') {
        ASSERT_EQ(joined.text()[at], text[begin]) << at;
      }
    }
  }
  EXPECT_GT(joins, 100);
}

TEST(ParagraphsTest, TimeIsLinearInTheText) {
  std::string text;
  for (int line = 0; line < 40'000; ++line) absl::StrAppend(&text, kWide, "\n");
  EXPECT_FALSE(absl::StrContains(Joined(text).substr(0, Joined(text).size() - 1), '\n'));
}

}  // namespace
}  // namespace linnet::model
