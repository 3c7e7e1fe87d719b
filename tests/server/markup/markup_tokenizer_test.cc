#include "server/markup/markup_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

using testing::ElementsAre;

constexpr MarkupSyntax kHtml = MarkupSyntax::kHtml;
constexpr MarkupSyntax kXml = MarkupSyntax::kXml;

// The tokens, each with a letter for its kind.
std::vector<std::string> Tokens(absl::string_view fragment, MarkupSyntax syntax = kHtml) {
  MarkupTokenizer tokenizer(fragment, syntax);
  MarkupToken token;
  std::vector<std::string> tokens;
  int end = 0;
  while (tokenizer.Next(token)) {
    EXPECT_EQ(token.begin, end);
    EXPECT_GT(token.end, token.begin);
    end = token.end;
    constexpr absl::string_view kKinds = "TCSEO";
    tokens.push_back(absl::StrCat(kKinds.substr(static_cast<int>(token.kind), 1), " ",
                                  fragment.substr(token.begin, token.end - token.begin)));
  }
  EXPECT_EQ(end, static_cast<int>(fragment.size()));
  return tokens;
}

std::vector<std::string> Attributes(absl::string_view tag) {
  MarkupTokenizer tokenizer(tag, kHtml);
  MarkupToken token;
  tokenizer.Next(token);
  std::vector<std::string> attributes;
  for (const MarkupAttribute& attribute : token.attributes)
    attributes.push_back(absl::StrCat(attribute.name, "=", attribute.value));
  return attributes;
}

TEST(MarkupTokenizerTest, TagsAndText) {
  EXPECT_THAT(Tokens("a <b class=x>c</b > d<br/>"),
              ElementsAre("T a ", "S <b class=x>", "T c", "E </b >", "T  d", "S <br/>"));
}

TEST(MarkupTokenizerTest, LessThanThatStartsNoTagIsText) {
  EXPECT_THAT(Tokens("1 < 2, a <3, <"), ElementsAre("T 1 < 2, a <3, <"));
  EXPECT_THAT(Tokens("a </> b </ c>"), ElementsAre("T a ", "O </>", "T  b ", "O </ c>"));
  EXPECT_THAT(Tokens("a </> b", kXml), ElementsAre("T a </> b"));
  EXPECT_THAT(Tokens("a <% b <%"), ElementsAre("T a <% b <%"));
}

TEST(MarkupTokenizerTest, TemplatesAreCopied) {
  EXPECT_THAT(Tokens("Dear <%= user['<b>'] %>, a <% b"),
              ElementsAre("T Dear ", "C <%= user['<b>'] %>", "T , a <% b"));
  EXPECT_THAT(Tokens("<%a%>", kXml), ElementsAre("T <%a%>"));
  EXPECT_THAT(Tokens("a <?php echo '<b>'; ?> b<?= $c->d ?><?php e >f"),
              ElementsAre("T a ", "C <?php echo '<b>'; ?>", "T  b", "C <?= $c->d ?>", "O <?php e >",
                          "T f"));
}

TEST(MarkupTokenizerTest, AttributesInThreeQuotings) {
  EXPECT_THAT(Attributes("<a href=/x/>"), ElementsAre("href=/x/"));
  EXPECT_THAT(Attributes("<a a='>' b = \"'\" c=d'e f/>"), ElementsAre("a=>", "b='", "c=d'e", "f="));
  EXPECT_THAT(Attributes("<a =b c=>"), ElementsAre("=b=", "c="));
}

TEST(MarkupTokenizerTest, WhatIsCutOffIsKept) {
  EXPECT_THAT(Tokens("a <b c='>"), ElementsAre("T a ", "O <b c='>"));
  EXPECT_THAT(Tokens("a <!-- b -> c"), ElementsAre("T a ", "O <!-- b -> c"));
  EXPECT_THAT(Tokens("a <b"), ElementsAre("T a ", "O <b"));
}

TEST(MarkupTokenizerTest, CommentsAndDeclarations) {
  EXPECT_THAT(Tokens("<!doctype html>a<!-- > -->b<!-->c<!--->d<!-- x --!>e<?p ?>"),
              ElementsAre("O <!doctype html>", "T a", "O <!-- > -->", "T b", "O <!-->", "T c",
                          "O <!--->", "T d", "O <!-- x --!>", "T e", "O <?p ?>"));
  EXPECT_THAT(Tokens("<?p a > b?>c<!DOCTYPE d [<!ENTITY e '>'>]>f", kXml),
              ElementsAre("O <?p a > b?>", "T c", "O <!DOCTYPE d [<!ENTITY e '>'>]>", "T f"));
}

TEST(MarkupTokenizerTest, CdataIsASectionOfXmlAlone) {
  EXPECT_THAT(Tokens("<![CDATA[a <b> ]] c]]>d", kXml),
              ElementsAre("C <![CDATA[a <b> ]] c]]>", "T d"));
  EXPECT_THAT(Tokens("<![CDATA[a <b> ]]>d"), ElementsAre("O <![CDATA[a <b>", "T  ]]>d"));
}

TEST(MarkupTokenizerTest, RawTextEndsWithItsOwnTag) {
  EXPECT_THAT(Tokens("<style>a<b></p></STYLE >c"),
              ElementsAre("S <style>", "C a<b></p>", "E </STYLE >", "T c"));
  EXPECT_THAT(Tokens("<title>a <b> &amp;</title>"),
              ElementsAre("S <title>", "T a <b> &amp;", "E </title>"));
  EXPECT_THAT(Tokens("<script></script>a"), ElementsAre("S <script>", "E </script>", "T a"));
  EXPECT_THAT(Tokens("<script>a</scriptx>"), ElementsAre("S <script>", "C a</scriptx>"));
  EXPECT_THAT(Tokens("<style>a</style>", kXml), ElementsAre("S <style>", "T a", "E </style>"));
}

TEST(MarkupTokenizerTest, ScriptInAComment) {
  EXPECT_THAT(Tokens("<script><!-- <script>a</script>b --></script>c"),
              ElementsAre("S <script>", "C <!-- <script>a</script>b -->", "E </script>", "T c"));
  EXPECT_THAT(Tokens("<script><!--><script>a</script>c"),
              ElementsAre("S <script>", "C <!--><script>a", "E </script>", "T c"));
}

}  // namespace
}  // namespace linnet::server
