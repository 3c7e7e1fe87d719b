#include "model/runtime/text/white_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WhiteSpaceTest, TrimsWhiteSpaceOfAnyScript) {
  const std::string text = "\uFEFF \u3000\n a b\u00A0\t";
  const absl::string_view trimmed = Trimmed(text);
  EXPECT_EQ(trimmed, "a b");
  EXPECT_EQ(trimmed.data() - text.data(), text.find('a'));
  for (const std::string blank : {"", " \n", "\uFEFF", "\uFEFF\u2003"}) {
    EXPECT_EQ(Trimmed(blank), "");
    EXPECT_EQ(Trimmed(blank).data(), blank.data() + blank.size());
  }
}

TEST(WhiteSpaceTest, OneLineHasABlankForEveryBreak) {
  EXPECT_EQ(OneLine("\uFEFF\n a\nb \r\n\t c\u2028d\t\te  f\u00A0g\n"), "a b c d e  f\u00A0g");
  EXPECT_EQ(OneLine("a  b"), "a  b");
  EXPECT_EQ(OneLine(" \n"), "");
}

TEST(WhiteSpaceTest, PiecesAreWordsAndRunsOfMarks) {
  EXPECT_THAT(PiecesOf(" A dog's (old) house... "),
              ElementsAre("A", "dog", "'", "s", "(", "old", ")", "house", "..."));
  EXPECT_THAT(PiecesOf("日本 e\u0301t\u00E9, 3.5"),
              ElementsAre("日", "本", "e\u0301t\u00E9", ",", "3", ".", "5"));
  EXPECT_THAT(PiecesOf(" \n"), IsEmpty());
}

TEST(WhiteSpaceTest, EndsInWhiteSpaceOfAnyScript) {
  for (const char* text : {" ", "a\t", "a\u00A0", "a\u3000"}) EXPECT_TRUE(EndsInWhiteSpace(text));
  for (const char* text : {"", "a", " a", "\u3000日"}) EXPECT_FALSE(EndsInWhiteSpace(text)) << text;
}

TEST(WhiteSpaceTest, KnowsScriptsWithoutBlanks) {
  for (const char* text : {"我爱你", "我爱你。", "你好吗？", "ありがとう", "ขอบคุณ",
                           "他说：“你好。”", "他说\"好。\"", "「はい。」", "ﾊｲ｡"})
    EXPECT_TRUE(EndsInUnspacedScript(text)) << text;
  for (const char* text : {"", "a", "a.", "à", "привет", "He said “no.”", "\""})
    EXPECT_FALSE(EndsInUnspacedScript(text)) << text;
}

}  // namespace
}  // namespace linnet::model
