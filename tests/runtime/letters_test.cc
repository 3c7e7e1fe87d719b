#include "model/runtime/text/letters.h"

#include <gtest/gtest.h>

namespace linnet::model {
namespace {

TEST(LettersTest, LettersAreThoseOfAnyScript) {
  for (const char* text : {"a", "12 É", "ß", "привет", "三", "あ", "ー", "한", "ก", "ש", "ª",
                           "5 kg", "`>sh", "𝐀", "a\u0301", "\xFF z"})
    EXPECT_TRUE(HasLetter(text)) << text;
}

TEST(LettersTest, DigitsMarksAndSymbolsAreNone) {
  for (const char* text : {"",
                           " \n",
                           "0123",
                           "٣",
                           "½²",
                           "Ⅳ",
                           "〇",
                           "---",
                           "```",
                           "\u200B",
                           "\u0301",
                           "😀",
                           "👨‍👩‍👧",
                           "🇩🇪",
                           "Ⓐ",
                           "№ 5",
                           "00:00:16,700 --> 00:00:18,000",
                           "1,234.56 €",
                           "「。」",
                           "\xFF\xC3"})
    EXPECT_FALSE(HasLetter(text)) << text;
}

}  // namespace
}  // namespace linnet::model
