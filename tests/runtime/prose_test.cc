#include "model/runtime/text/prose.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"

namespace linnet::model {
namespace {

using ::testing::Ge;
using ::testing::Le;
using ::testing::Lt;

TEST(ProseTest, SentencesAreProse) {
  for (const absl::string_view text : {
           "The city council voted on Tuesday to close the main street to cars.",
           "\"Don't!\" she said (well-known as she is), and/or: nothing; 12 percent more, in 2021.",
           "Der Hund läuft über die Straße – und bellt „laut“.",
           "Это не код, а предложение.",
           "これはコードではなく、普通の文です。",
           "We train on ImageNet at 224 pixels, e.g. for 90 epochs, and report top-1 accuracy.",
       })
    EXPECT_THAT(ProseShare(text), Ge(0.8)) << text;
}

TEST(ProseTest, CodeTablesAndLinksAreNone) {
  for (const absl::string_view text : {
           "int main() {\n  std::cout << x_1;\n  return f(a, b);\n}\n",
           "| a | b |\n|---|---|\n| one two | three four |\n",
           "name\tcount\tshare\nred car\t3\t4\n",
           "name,count,share\nred,3,4\nblue,5,6\n",
           "https://example.org/a https://example.org/b [page](docs/page.md)",
           "```\nmake all the tests\n```",
           "def run(self):\n    self.value = other.value[0]\n",
           "{\"a\": 1, \"b\": [2, 3]}",
       })
    EXPECT_THAT(ProseShare(text), Lt(0.5)) << text;
}

TEST(ProseTest, ShareIsThatOfBytesWithoutWhiteSpace) {
  EXPECT_DOUBLE_EQ(ProseShare("word a_b_"), 0.5);
  EXPECT_DOUBLE_EQ(ProseShare("  word  \n\n a_b_ \n"), 0.5);
  EXPECT_DOUBLE_EQ(ProseShare(""), 1);
  EXPECT_DOUBLE_EQ(ProseShare(" \n"), 1);
  EXPECT_DOUBLE_EQ(ProseShare("ab 1234"), 4.0 / 6) << "numbers count as much as words at most";
  EXPECT_DOUBLE_EQ(ProseShare("- * --"), 0) << "marks alone are no words";
}

TEST(ProseTest, EveryFormOfAWordIsKnown) {
  for (const absl::string_view word :
       {"don't", "well-known", "and/or", "COVID-19", "McDonald", "iPhone", "3rd", "e.g.", "U.S.A.",
        "AT&T", "end.\"", "(so)", "_so_", "**so**", "Ärger", "नमस्ते", "e\u0301tat"})
    EXPECT_EQ(ProseShare(std::string("sentence ") + std::string(word)), 1) << word;
  for (const absl::string_view word :
       {"a_b", "f(x)", "std::string", "camelCase", "docs/page/API.md", "file.txt", "x1", "a=b",
        "<b>", "#include", "@name", "C:\\x", "a.example.org", "--flag=1", "{so}", "$x"})
    EXPECT_LT(ProseShare(std::string("sentence ") + std::string(word)), 1) << word;
}

// A text of bytes that are not UTF-8, as the cut at 64 KiB may leave one, ends the reading nowhere.
TEST(ProseTest, LongTextIsReadAtItsStart) {
  std::string text;
  while (text.size() < (64 << 10)) text += "wörter ";
  EXPECT_THAT(ProseShare(text + std::string(1 << 20, '_')), Ge(0.99));
  EXPECT_THAT(ProseShare(std::string(1 << 20, '_') + text), Le(0.01));
}

}  // namespace
}  // namespace linnet::model
