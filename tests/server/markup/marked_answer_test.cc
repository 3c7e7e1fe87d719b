#include "server/markup/marked_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "tests/server/markup/marked_fixture.h"

namespace linnet::server {
namespace {

constexpr MarkupOptions kHtml = {};
const MarkupOptions kXml = {.syntax = MarkupSyntax::kXml};

std::string PlainText(const std::string& fragment, const MarkupOptions& options = kHtml) {
  return MarkedText(fragment, options).text();
}

// Translates word by word: each into capitals, in the order that `order` gives, or in that of the
// source.
std::string Translated(const std::string& fragment, const MarkupOptions& options = kHtml,
                       std::vector<int> order = {}) {
  return AnswerOf(
      fragment, options,
      [&](absl::string_view source, std::string& translation, MarkedAnswer::Segment& segment) {
        segment.words.source = WordRanges(source);
        const auto count = static_cast<int>(segment.words.source.size());
        for (int i = 0; i < count; ++i) {
          const int from = static_cast<int>(order.size()) == count ? order[i] : i;
          const ByteRange& word = segment.words.source[from];
          if (!translation.empty()) translation += ' ';
          const auto begin = static_cast<int>(translation.size());
          translation += absl::AsciiStrToUpper(source.substr(word.begin, word.end - word.begin));
          segment.words.target.push_back({begin, static_cast<int>(translation.size())});
          segment.words.links.push_back({from, i, 1});
        }
      });
}

TEST(MarkedTextTest, BlocksAreLines) {
  EXPECT_EQ(PlainText("<h1>A</h1><p>b <b>c</b></p>d<br>e<ul><li>f<li>g</ul>"),
            "A\nb c\nd\ne\nf\ng\n");
}

TEST(MarkedTextTest, FoldsWhiteSpace) {
  EXPECT_EQ(PlainText(" <p> a\n\t b <b> c</b> <i> d </i></p>\n"), "a b c d \n");
  EXPECT_EQ(PlainText("a&nbsp; &nbsp;b"), "a\u00a0 \u00a0b\n");
}

TEST(MarkedTextTest, DecodesReferences) {
  EXPECT_EQ(PlainText("AT&amp;T &lt;b&gt; &euro;5 &unknown;"), "AT&T <b> €5 &unknown;\n");
}

TEST(MarkedTextTest, WhatIsNotTranslatedIsNoText) {
  EXPECT_EQ(PlainText("<div translate=no>a <div>b</div>c</div><p>c</p>"), "c\n");
  EXPECT_EQ(PlainText("see<script>a<b></script>!<link><textarea hidden></textarea>"),
            "see!\U000F0000\n");
}

TEST(MarkedTextTest, TextsSideBySideAreApart) {
  EXPECT_EQ(PlainText("<nav><a>Home</a><a>about us</a> <a>c</a></nav>"), "Home\nabout us c\n");
  EXPECT_EQ(PlainText("<span>Price</span><span>Total</span><b>un</b><i>able</i>"),
            "Price\nTotalunable\n");
  EXPECT_EQ(PlainText("<label>First<input></label><label>last</label>"), "First\nlast\n");
  EXPECT_EQ(PlainText("<i><n>Red shoe</n><p>10</p><p>5</p></i>", kXml), "Red shoe\n105\n");
}

TEST(MarkedTextTest, EmptyElementsKeepWordsApart) {
  EXPECT_EQ(PlainText("one<br/>two <br/>three<x/><y/>four.<br/>Five", kXml),
            "one two three four. Five\n");
  EXPECT_EQ(PlainText("one<b/>,(<b/>two<b></b>s", kXml), "one,(twos\n") << "beside a mark";
  EXPECT_EQ(PlainText("one<img>two<wbr>s<input>"), "one twos\n");
  EXPECT_EQ(PlainText("one<x/>two<br/>three",
                      {.syntax = MarkupSyntax::kXml, .non_splitting_tags = {"x"}}),
            "onetwo three\n");
  EXPECT_EQ(
      PlainText("a<code>1</code>b<code>2</code>c<code>3</code>d<code>4</code>e<code>5</code>f"),
      "a b c d e f\n")
      << "more than have a stand-in";
}

TEST(MarkedTextTest, DigitsAboveAndBelowTheLineAreCopied) {
  EXPECT_EQ(PlainText("H<sub>2</sub>O, m<SUP>-1</SUP>, the 4<sup>th</sup>"),
            "H\U000F0000O, m\U000F0001, the 4th\n");
}

TEST(MarkedTextTest, CharactersStandForWhatIsCopied) {
  EXPECT_EQ(PlainText("Run <code>ls <b>x</b></code> now!"), "Run \U000F0000 now!\n");
  EXPECT_EQ(PlainText("<i class='x notranslate'>a <i>b</i></i> c"), "\U000F0000 c\n");
  EXPECT_EQ(PlainText("<x>a</x><y>b</y><x>c</x>", {.ignore_tags = {"x"}}),
            "\U000F0000b\U000F0001\n");
  EXPECT_EQ(PlainText("<a>b &name;<![CDATA[c]]></a>", kXml), "b \U000F0000\U000F0001\n");
  const MarkedText text("see <b><kbd>x</kbd></b>", kHtml);
  EXPECT_TRUE(text.HasCodes(0, 8)) << "the tag before x";
  EXPECT_FALSE(MarkedText("see <kbd>x</kbd> y", kHtml).HasCodes(0, 10));
  EXPECT_EQ(text.SourceRange(4, 8), (ByteRange{7, 19}));
}

TEST(MarkedTextTest, WhatIsCutOffStaysAtTheEnd) {
  EXPECT_EQ(PlainText("a <code>b <i c='"), "a \n");
  EXPECT_EQ(PlainText("a <![CDATA[b", kXml), "a \n");
}

TEST(MarkedTextTest, FewCharactersStandForWhatIsCopied) {
  EXPECT_EQ(PlainText("<p><kbd>1</kbd> <kbd>2</kbd> <kbd>3</kbd> <kbd>4</kbd>. "
                      "<kbd>5</kbd> <kbd>6</kbd> <kbd>7</kbd> <kbd>8</kbd> a <kbd>9</kbd>.<p>"
                      "<kbd>10</kbd>"),
            "\U000F0000 \U000F0001 \U000F0002 \U000F0003. a .\n\U000F0009\n");
  EXPECT_EQ(PlainText("see <kbd>x</kbd> \U000F0007"), "see \U000F0007\n");
  EXPECT_EQ(PlainText("see <kbd>x</kbd> &#xF0000;"), "see \U000F0000\n");
}

TEST(MarkedTextTest, InlineTagsDoNotChangeTheText) {
  EXPECT_EQ(PlainText("un<b>believ</b>able <i>news</i><!-- c -->."), "unbelievable news.\n");
}

TEST(MarkedTextTest, TagsThatSplit) {
  EXPECT_EQ(PlainText("a<x>b</x>c<p>d</p>", {.splitting_tags = {"x"}, .non_splitting_tags = {"p"}}),
            "a\nb\ncd\n");
  EXPECT_EQ(PlainText("<p>a</p><p>b</p>", kXml), "ab\n");
}

TEST(MarkedTextTest, AttributesComeBeforeTheirBlock) {
  const std::string fragment = "<p title='One'>a <img alt=\"Two &amp; three\" src=x> b</p><p>c";
  EXPECT_EQ(PlainText(fragment), "a b\nc\n");
  EXPECT_EQ(PlainText(fragment, {.attributes = true}), "One\nTwo & three\na b\nc\n");
}

TEST(MarkedTextTest, KnowsTheSource) {
  const std::string fragment = "<p>a&amp;b  <b>cd</b></p>";
  const MarkedText text(fragment, kHtml);
  ASSERT_EQ(text.text(), "a&b cd\n");
  EXPECT_EQ(text.SourceRange(0, 1), (ByteRange{3, 4}));
  EXPECT_EQ(text.SourceRange(1, 2), (ByteRange{4, 9}));
  EXPECT_EQ(text.SourceRange(2, 6), (ByteRange{9, 17}));
  EXPECT_TRUE(text.HasCodes(0, 6));
  EXPECT_FALSE(text.HasCodes(4, 6));
}

TEST(MarkedAnswerTest, CodesFollowTheirWords) {
  const std::string fragment = "<p>the <b>red</b> house</p>";
  EXPECT_EQ(Translated(fragment), "<p>THE <b>RED</b> HOUSE</p>");
  EXPECT_EQ(Translated(fragment, kHtml, {2, 1, 0}), "<p>HOUSE <b>RED</b> THE</p>");
  EXPECT_EQ(Translated(fragment, kHtml, {0, 2, 1}), "<p>THE HOUSE <b>RED</b></p>");
}

TEST(MarkedAnswerTest, ElementsKeepTheirTree) {
  const std::string fragment = "<a>x <b>y z</b></a> <i>w</i>";
  EXPECT_EQ(Translated(fragment, kHtml, {3, 2, 1, 0}), "<i>W</i> <a><b>Z Y</b> X</a>");
  // y comes between the words of the others: its element goes with the greater run.
  EXPECT_EQ(Translated(fragment, kHtml, {1, 0, 3, 2}), "<a><b>Y</b> X</a> <i>W</i> Z");
}

TEST(MarkedAnswerTest, TagThatSplitsAWordMovesToItsEdge) {
  EXPECT_EQ(Translated("un<b>believ</b>able news"), "<b>UNBELIEVABLE</b> NEWS");
  EXPECT_EQ(Translated("a<wbr>b c"), "<wbr>AB C");
}

TEST(MarkedAnswerTest, ElementsThatShareAWordAreBothAroundIt) {
  EXPECT_EQ(Translated("<b>un</b><i>able</i> news"), "<b><i>UNABLE</i></b> NEWS");
  EXPECT_EQ(Translated("<b>a un</b><i>ab</i><u>le</u> news"), "<b>A <i><u>UNABLE</u></i></b> NEWS");
  EXPECT_EQ(Translated("<b><u>un</u></b><i>able</i> news", kHtml, {1, 0}),
            "NEWS <b><u><i>UNABLE</i></u></b>");
  EXPECT_EQ(Translated("<a>un</a><i><a>ab</a>le</i>"), "<i><a></a></i><a>UNABLE</a>");
  EXPECT_EQ(Translated("<a>un</a><a>able</a>", kXml), "<a></a><a>UNABLE</a>");
}

TEST(MarkedAnswerTest, TagsWithinWordsThatAreCopiedStayThere) {
  EXPECT_EQ(Translated("<b>HTTP://A</b><i>.COM/<u>X</u></i>? now", kHtml, {1, 0}),
            "NOW <b>HTTP://A</b><i>.COM/<u>X</u></i>?");
  EXPECT_EQ(Translated("A<wbr>B<img>C d A1<i>B1</i>"), "A<wbr>B<img>C D A1<i>B1</i>");
  EXPECT_EQ(Translated("A<b>B</b> AB"), "<b>AB</b> AB") << "it is not known which one it is";
}

TEST(MarkedAnswerTest, ElementLeavesAMarkOutThatItHasNot) {
  const std::string fragment = "x <b>y</b>, z";
  const MarkedText text(fragment, kHtml);
  MarkedAnswer answer(fragment, text);
  const WordLinks words = {{{0, 1}, {2, 3}, {3, 4}, {5, 6}},
                           {{0, 1}, {2, 3}, {3, 4}, {5, 6}},
                           {{0, 0, 1}, {1, 1, 1}, {1, 2, 1}, {3, 3, 1}}};
  const std::string part = answer.Add({0, 6, "X Y, Z", false, words, 7}).text();
  EXPECT_EQ(part + answer.Finish(), "X <b>Y</b>, Z");
}

TEST(MarkedAnswerTest, ElementsOfATermAreBothAroundIt) {
  const std::string fragment = "in <b>New</b> <i>York</i> now";
  const MarkedText text(fragment, kHtml);
  const auto answer_of = [&](const WordLinks& words, absl::string_view translation) {
    MarkedAnswer answer(fragment, text);
    const std::string part = answer.Add({0, 15, translation, false, words, 16}).text();
    return part + answer.Finish();
  };
  const WordLinks term = {
      {{0, 2}, {3, 11}, {12, 15}}, {{0, 3}, {4, 6}, {7, 14}}, {{2, 0, 1}, {0, 1, 1}, {1, 2, 1}}};
  EXPECT_EQ(answer_of(term, "NOW IN NEUYORK"), "NOW IN <b><i>NEUYORK</i></b>");
  const WordLinks two_words = {{{0, 2}, {3, 11}, {12, 15}},
                               {{0, 5}, {6, 10}, {11, 13}, {14, 17}},
                               {{1, 0, 1}, {1, 1, 1}, {0, 2, 1}, {2, 3, 1}}};
  EXPECT_EQ(answer_of(two_words, "NUEVA YORK IN NOW"), "<b><i>NUEVA YORK</i></b> IN NOW");
}

TEST(MarkedAnswerTest, EmptyElementsGoBeforeTheWordOnTheirRight) {
  const std::string fragment = "see <img src=a> x and <i></i> y";
  EXPECT_EQ(Translated(fragment), "SEE <img src=a> X AND <i></i>Y");
  EXPECT_EQ(Translated(fragment, kHtml, {3, 2, 1, 0}), "<i></i>Y AND <img src=a> X SEE");
}

TEST(MarkedAnswerTest, EmptyElementsStayWithoutBlanks) {
  for (const char* fragment :
       {"one<br/>two", "one<br/>two <i/> three<x/><y/>four", "one.<br/>Two", "a <b>one<br/>two</b>",
        "one<br/><b>two</b> three", "<b>one</b><br/>two", "one,<br/>two<br/>"}) {
    const std::string answer = Translated(fragment, kXml);
    EXPECT_EQ(absl::AsciiStrToLower(answer), absl::AsciiStrToLower(fragment));
  }
  EXPECT_EQ(Translated("one<img>two three", kHtml, {2, 1, 0}), "THREE<img>TWO ONE");
}

TEST(MarkedAnswerTest, NoteMarksStayBehindTheirWord) {
  EXPECT_EQ(Translated("see<img> x y", kHtml, {1, 0, 2}), "X SEE<img> Y");
}

TEST(MarkedAnswerTest, CommaStaysBehindItsWord) {
  const std::string fragment = "a <img> b";
  const MarkedText text(fragment, kHtml);
  MarkedAnswer answer(fragment, text);
  // "b" is aligned with the comma more than with "B".
  const WordLinks words = {
      {{0, 1}, {2, 3}}, {{0, 1}, {1, 2}, {3, 4}}, {{0, 0, 1}, {1, 1, 1}, {1, 2, 0.5F}}};
  const std::string part = answer.Add({0, 3, "A, B", false, words, 4}).text();
  EXPECT_EQ(part + answer.Finish(), "A <img>, B");
}

TEST(MarkedAnswerTest, CopiedElementsKeepTheirBlanks) {
  EXPECT_EQ(Translated("run <code>a</code> now"), "RUN <code>a</code> NOW");
  EXPECT_EQ(Translated("run <code>a</code> now", kHtml, {2, 1, 0}), "NOW <code>a</code> RUN");
  EXPECT_EQ(Translated("run (<code>a</code>), now", kHtml, {2, 1, 0}), "NOW (<code>a</code>), RUN");
  EXPECT_EQ(Translated("<b>run <code>a</code></b> now", kHtml, {2, 1, 0}),
            "NOW <b><code>a</code> RUN</b>");
}

TEST(MarkedAnswerTest, CopiedElementsStayInTheirElement) {
  // The stand-in comes between other words, where its element cannot reach.
  EXPECT_EQ(Translated("<b>a b c <kbd>x</kbd></b> <i>d e f</i>", kHtml, {0, 1, 2, 4, 3, 5, 6}),
            "<b>A B C <kbd>x</kbd></b> <i>D E F</i>");
}

TEST(MarkedAnswerTest, CopiedElementsReturnOnceWhateverTheTranslation) {
  const auto translated = [](const std::string& translation) {
    return AnswerOf(
        "go <kbd>x</kbd> <kbd>y</kbd>.", kHtml,
        [&](absl::string_view, std::string& out, MarkedAnswer::Segment&) { out = translation; });
  };
  EXPECT_EQ(translated("\U000F0001 GO \U000F0000."), "<kbd>y</kbd> GO <kbd>x</kbd>.");
  EXPECT_EQ(translated("\U000F0000 \U000F0000 \U000F0001."), "<kbd>x</kbd> <kbd>y</kbd>.");
  EXPECT_EQ(translated("GO \U000F0001."), "GO <kbd>x</kbd> <kbd>y</kbd>.");
}

TEST(MarkedAnswerTest, ElementsAcrossSegments) {
  const std::string fragment = "one <b>two. three</b> four";
  EXPECT_EQ(Translated(fragment), "ONE <b>TWO. THREE</b> FOUR");
  EXPECT_EQ(Translated(fragment, kHtml, {1, 0}), "<b>TWO. ONE FOUR THREE</b>");
}

TEST(MarkedAnswerTest, RestoresWhatIsBetweenSegments) {
  const std::string fragment =
      " <ul>\n  <li> <b> A.  B </b>\n<!-- c --><pre> x\n </pre> <script>y</script>\n12</ul>\n";
  EXPECT_EQ(Translated(fragment), fragment);
}

TEST(MarkedAnswerTest, EscapesText) {
  EXPECT_EQ(Translated("a &lt; b &amp; <b>c</b> &copy; 'd'"), "A &lt; B &amp; <b>C</b> © 'D'");
}

TEST(MarkedAnswerTest, TagsOfTemplatesStayAsTheyAre) {
  EXPECT_EQ(Translated("a {{ 1 && 2 }} <b>{% 1 < 2 %}</b> b > {{ 3 &amp; 4 }} {{ 5 & 6"),
            "A {{ 1 && 2 }} <b>{% 1 < 2 %}</b> B &gt; {{ 3 &amp; 4 }} {{ 5 &amp; 6");
  EXPECT_EQ(Translated("<p title='{{ 1 && 2 }} a > b'>c</p>", {.attributes = true}),
            "<p title='{{ 1 && 2 }} A &gt; B'>C</p>");
  EXPECT_EQ(Translated("a {% 1 > 2 %} > b", kXml), "A {% 1 > 2 %} &gt; B");
  EXPECT_EQ(Translated("a ${1 > 2} {3 > 4}", kXml), "A ${1 > 2} {3 &gt; 4}");
}

TEST(MarkedAnswerTest, WritesAttributes) {
  const MarkupOptions options = {.attributes = true};
  EXPECT_EQ(
      Translated(
          "<p title='a &amp; \"b\"'>c <img src=x alt=d> e <i aria-label=\"f. g\" lang=en>h</i></p>",
          options),
      "<p title='A &amp; \"B\"'>C <img src=x alt=\"D\"> E <i aria-label=\"F. G\" "
      "lang=en>H</i></p>");
  EXPECT_EQ(Translated("<img alt='a' title=\"\"><img alt='b'>", options),
            "<img alt='A' title=\"\"><img alt='B'>");
}

TEST(MarkedAnswerTest, UnpairedTagsAreKept) {
  EXPECT_EQ(Translated("a <b>b c</i> d"), "A <b>B C</i> D");
  EXPECT_EQ(Translated("a <b><i>b</b> c</i> d"), "A <b><i>B</b> C</i> D");
  EXPECT_EQ(Translated("<p>a <b>b<p>c</b> d", kHtml), "<p>A <b>B<p>C</b> D");
}

TEST(MarkedAnswerTest, EntityOfADtdIsKept) {
  EXPECT_EQ(Translated("a &product; b", kXml), "A &product; B");
}

// The translation of "a <b>x y</b> c", which is "A X Y C", with these links.
std::string Projected(const std::string& fragment, const std::vector<WordLink>& links) {
  const MarkedText marked(fragment, kHtml);
  MarkedAnswer answer(fragment, marked);
  const std::vector<ByteRange> words = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  const std::string text = answer.Add({0, 7, "A X Y C", false, {words, words, links}, 8}).text();
  return text + answer.Finish();
}

TEST(MarkedAnswerTest, WordThatAllLookAtSaysLittle) {
  // Each word of the answer looks at "c" most, and at its own word a little.
  std::vector<WordLink> links;
  for (int i = 0; i < 4; ++i) {
    links.push_back({3, i, 0.6F});
    if (i < 3) links.push_back({i, i, 0.4F});
  }
  EXPECT_EQ(Projected("a x y <b>c</b>", links), "A X Y <b>C</b>");
  EXPECT_EQ(Projected("a <b>x</b> y c", links), "A <b>X</b> Y C");
}

TEST(MarkedAnswerTest, ElementIsAboutAsLongAsInTheSource) {
  // "Y" is slightly more of "x" than not, and "C" is of no word.
  const std::vector<WordLink> links = {
      {0, 0, 1}, {1, 1, 1}, {1, 2, 0.55F}, {2, 2, 0.45F}, {3, 3, 1}};
  EXPECT_EQ(Projected("a <b>x</b> y c", links), "A <b>X</b> Y C");
  EXPECT_EQ(Projected("a <b>x y</b> c", links), "A <b>X Y</b> C");
}

TEST(MarkedAnswerTest, ElementWithWordsGetsOne) {
  // No word of the answer looks at "x" more than at "a", and "X" does most.
  const std::vector<WordLink> links = {{0, 0, 1}, {0, 1, 0.7F}, {1, 1, 0.3F}, {2, 2, 1}, {3, 3, 1}};
  EXPECT_EQ(Projected("a <b>x</b> y c", links), "A <b>X</b> Y C");
}

TEST(MarkedAnswerTest, ElementWithAWordEnclosesMoreThanMarks) {
  const std::string fragment = "a, <b>x</b>";
  const MarkedText text(fragment, kHtml);
  MarkedAnswer answer(fragment, text);
  // The comma looks at "x" more than "X" does.
  const WordLinks words = {{{0, 1}, {1, 2}, {3, 4}},
                           {{0, 1}, {1, 2}, {3, 4}},
                           {{0, 0, 1}, {0, 1, 0.58F}, {2, 1, 0.42F}, {0, 2, 0.6F}, {2, 2, 0.4F}}};
  const std::string part = answer.Add({0, 4, "A, X", false, words, 5}).text();
  EXPECT_EQ(part + answer.Finish(), "A, <b>X</b>");
}

TEST(MarkedAnswerTest, EqualWordsBelongTogether) {
  const std::string fragment = "say <b>Next</b>.";
  const MarkedText text(fragment, kHtml);
  MarkedAnswer answer(fragment, text);
  // "ON" looks at "Next", and "Next" at "say".
  const WordLinks words = {{{0, 3}, {4, 8}, {8, 9}},
                           {{0, 3}, {4, 6}, {7, 11}, {11, 12}},
                           {{0, 0, 1}, {1, 1, 1}, {0, 2, 1}, {2, 3, 1}}};
  const std::string part = answer.Add({0, 9, "SAY ON Next.", false, words, 10}).text();
  EXPECT_EQ(part + answer.Finish(), "SAY ON <b>Next</b>.");
}

TEST(MarkedAnswerTest, TellsTheRangesOfWords) {
  const std::string fragment = "<p>x <b>y</b> &amp; z</p>";
  const MarkedText text(fragment, kHtml);
  MarkedAnswer answer(fragment, text);
  const WordLinks words = {
      {{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{1, 1, 1}}};
  const MarkedAnswer::Part part = answer.Add({0, 7, "X Y & Z", false, words, 8});
  ASSERT_EQ(part.text(), "<p>X <b>Y</b> &amp; Z");
  EXPECT_EQ(part.translation(), (ByteRange{3, 21}));
  EXPECT_EQ(part.PlaceInPart(0, 1), (ByteRange{3, 4}));
  EXPECT_EQ(part.PlaceInPart(2, 3), (ByteRange{8, 9}));
  EXPECT_EQ(part.PlaceInPart(4, 5), (ByteRange{14, 19}));
  EXPECT_EQ(part.PlaceInPart(6, 7), (ByteRange{20, 21}));
}

}  // namespace
}  // namespace linnet::server
