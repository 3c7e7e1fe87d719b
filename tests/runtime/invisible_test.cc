#include "model/runtime/text/invisible.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet::model {
namespace {

// The text without the invisible characters that spelling does not need.
std::string Visible(const std::string& text) {
  std::string visible;
  for (int at = 0; at < std::ssize(text);) {
    const Character c = CharacterAt(text, at);
    at = c.end;
    if (!IsInvisible(c.code_point) || IsNeededJoiner(text, c))
      visible += text.substr(c.begin, c.end - c.begin);
  }
  return visible;
}

TEST(InvisibleTest, FormatCharactersAreInvisible) {
  EXPECT_EQ(Visible("rail\u00ADway\u200B \u200Estation\u200F\u2060\u061C\u202A\u2069\uFEFF"),
            "railway station");
  EXPECT_EQ(Visible("a\u200Cb \u200Dc\u200D"), "ab c") << "joiners of Latin letters";
  EXPECT_EQ(Visible("\u0600\u06DD"), "\u0600\u06DD") << "format characters that show";
}

TEST(InvisibleTest, JoinersThatSpellingNeedsStay) {
  for (const std::string text : {
           "می\u200Cخواهم",         // Persian
           "क्\u200Dष", "क्\u200Cष",  // Hindi
           "ක්\u200Dර",              // Sinhala
           "👩\u200D💻", "👩🏽\u200D💻", "❤\uFE0F\u200D🔥",
           "🏴\U000E0067\U000E0062\U000E007F",  // a flag
       })
    EXPECT_EQ(Visible(text), text);
  EXPECT_EQ(Visible("می\u200C خواهم"), "می خواهم") << "at the end of a word";
}

}  // namespace
}  // namespace linnet::model
