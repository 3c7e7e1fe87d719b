#include "server/markup/character_references.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

constexpr MarkupSyntax kHtml = MarkupSyntax::kHtml;
constexpr MarkupSyntax kXml = MarkupSyntax::kXml;

std::string Decoded(absl::string_view text, MarkupSyntax syntax = kHtml,
                    bool in_attribute = false) {
  std::string out;
  const int length = DecodeReference(text, 0, syntax, in_attribute, out);
  return absl::StrCat(length, " ", out);
}

TEST(CharacterReferenceTest, NamesOfHtml) {
  EXPECT_EQ(Decoded("&amp;"), "5 &");
  EXPECT_EQ(Decoded("&euro;"), "6 €");
  EXPECT_EQ(Decoded("&euro"), "0 ");
  EXPECT_EQ(Decoded("&copy 2024"), "5 ©");
  EXPECT_EQ(Decoded("&notit;"), "4 ¬");
  EXPECT_EQ(Decoded("&notin;"), "7 ∉");
  EXPECT_EQ(Decoded("&NotEqualTilde;"), "15 ≂̸");
  EXPECT_EQ(Decoded("&CounterClockwiseContourIntegral;"), "33 ∳");
  EXPECT_EQ(Decoded("&unknown;"), "0 ");
  EXPECT_EQ(Decoded("& "), "0 ");
}

TEST(CharacterReferenceTest, NamesWithoutSemicolonInAttributes) {
  EXPECT_EQ(Decoded("&copy=1", kHtml, true), "0 ");
  EXPECT_EQ(Decoded("&copyx", kHtml, true), "0 ");
  EXPECT_EQ(Decoded("&copy;x", kHtml, true), "6 ©");
  EXPECT_EQ(Decoded("&copy ", kHtml, true), "5 ©");
}

TEST(CharacterReferenceTest, Numbers) {
  EXPECT_EQ(Decoded("&#65;"), "5 A");
  EXPECT_EQ(Decoded("&#x1F600;"), "9 😀");
  EXPECT_EQ(Decoded("&#65a"), "4 A");
  EXPECT_EQ(Decoded("&#128;"), "6 €");
  EXPECT_EQ(Decoded("&#0;"), "4 �");
  EXPECT_EQ(Decoded("&#xD800;"), "8 �");
  EXPECT_EQ(Decoded("&#99999999999999;"), "17 �");
  EXPECT_EQ(Decoded("&#x;"), "0 ");
}

TEST(CharacterReferenceTest, NamesOfXml) {
  EXPECT_EQ(Decoded("&apos;", kXml), "6 '");
  EXPECT_EQ(Decoded("&euro;", kXml), "0 ");
  EXPECT_EQ(Decoded("&lt", kXml), "0 ");
  EXPECT_EQ(Decoded("&#65", kXml), "0 ");
}

}  // namespace
}  // namespace linnet::server
