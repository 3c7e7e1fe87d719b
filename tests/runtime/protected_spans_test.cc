#include "model/runtime/tokenizer/protected_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;

const Names kNames({"<ph0>", "KX7", "ZB4", "WT9"});

ProtectedSpan SpanOf(const std::string& text, const std::string& part) {
  const auto begin = static_cast<int>(text.find(part));
  return {begin, begin + static_cast<int>(part.size()), part};
}

std::vector<ProtectedSpan> Numbered(std::vector<ProtectedSpan> spans) {
  for (size_t i = 0; i < spans.size(); ++i) spans[i].stand_in = static_cast<int>(i);
  return spans;
}

std::vector<std::string> Merged(const std::string& text, const std::vector<std::string>& parts) {
  std::vector<ProtectedSpan> spans;
  for (const std::string& part : parts) {
    spans.push_back(SpanOf(text, part));
    GrowToWords(text, spans.back());
  }
  std::vector<std::string> merged;
  for (const ProtectedSpan& span : MergeSpans(text, spans)) {
    EXPECT_EQ(text.substr(span.begin, span.end - span.begin), span.text);
    merged.push_back(span.text);
  }
  return merged;
}

TEST(ProtectedSpansTest, SpansGrowToWordsAndJoinAcrossBlanks) {
  EXPECT_THAT(Merged("a %s b", {"%s"}), ElementsAre("%s"));
  EXPECT_THAT(Merged("a %spx b{0}c", {"%s", "{0}"}), ElementsAre("%spx b{0}c"));
  EXPECT_THAT(Merged("é{0}, 東{1}京", {"{0}", "{1}"}), ElementsAre("é{0}", "{1}"));
  EXPECT_THAT(Merged("{0} {1}, {2}", {"{1}", "{0}", "{2}"}), ElementsAre("{0} {1}", "{2}"));
  EXPECT_THAT(Merged("{0}\n{1}", {"{0}", "{1}"}), ElementsAre("{0}", "{1}"));
  EXPECT_THAT(Merged("%s:%d, {a}/{b}. {c} - {d}", {"%s", "%d", "{a}", "{b}", "{c}", "{d}"}),
              ElementsAre("%s:%d", "{a}/{b}", "{c}", "{d}"));
  EXPECT_THAT(Merged("see http://a/Berlin now", {"Berlin", "http://a/Berlin"}),
              ElementsAre("http://a/Berlin"));
  EXPECT_THAT(Merged("abcdef gh", {"abcd", "cdef"}), ElementsAre("abcdef"));
}

TEST(ProtectedSpansTest, SpanGrowsToShortWords) {
  const auto grown = [](const std::string& text) {
    ProtectedSpan span = SpanOf(text, "%s");
    GrowToWords(text, span, 3);
    return span.text;
  };
  EXPECT_EQ(grown("a %spx b"), "%spx");
  EXPECT_EQ(grown("a SIG%s b"), "SIG%s");
  EXPECT_EQ(grown("a failed%s b"), "%s");
  EXPECT_EQ(grown("a %sBuilt b"), "%s");
  EXPECT_EQ(grown("a %sdürr b"), "%s");
  EXPECT_EQ(grown("a name%sname b"), "name%sname");
}

// Whichever of them are merged first, and how many bytes that adds.
TEST(ProtectedSpansTest, SpansAreMergedInParts) {
  const std::string text = "{0} {1}, {2}\n{3}{4} abcdef";
  std::vector<ProtectedSpan> spans;
  for (const char* part : {"{0}", "{1}", "{2}", "{3}", "{4}", "abcd", "cdef"})
    spans.push_back(SpanOf(text, part));
  const std::vector<ProtectedSpan> whole = MergeSpans(text, spans);
  for (size_t cut = 0; cut <= spans.size(); ++cut) {
    std::vector<ProtectedSpan> merged;
    const auto middle = spans.begin() + static_cast<std::ptrdiff_t>(cut);
    int64_t bytes = AddSpans(text, {spans.begin(), middle}, merged);
    bytes += AddSpans(text, {middle, spans.end()}, merged);
    EXPECT_EQ(merged, whole);
    for (const ProtectedSpan& span : merged) bytes -= std::ssize(span.text);
    EXPECT_EQ(bytes, 0);
  }
}

TEST(ProtectedSpansTest, ReplacedTextGrowsWithItsWord) {
  const std::string text = "in Berlin2 now";
  ProtectedSpan span = SpanOf(text, "Berlin");
  span.text = "Lyon";
  GrowToWords(text, span);
  EXPECT_EQ(span.text, "Lyon2");
  EXPECT_EQ(span.end, 10);
}

struct Restored {
  std::string text;
  std::vector<int> forced;
  bool operator==(const Restored&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Restored& restored) {
  out << restored.text << " forced";
  for (const int i : restored.forced) out << ' ' << i;
  return out;
}

Restored Restore(const std::string& source, const std::vector<std::string>& parts,
                 const std::string& raw, bool once = true) {
  std::vector<ProtectedSpan> spans;
  for (const std::string& part : parts) spans.push_back(SpanOf(source, part));
  const RestoredText restored = RestoreSpans(raw, kNames, Numbered(spans), source, once);
  return {restored.text, restored.forced};
}

TEST(ProtectedSpansTest, StandInsBecomeTheirSpans) {
  EXPECT_EQ(Restore("I have 3 🐱 and 2 🐶.", {"🐱", "🐶"}, "Ich habe 3 <ph0> und 2 KX7."),
            (Restored{"Ich habe 3 🐱 und 2 🐶.", {}}));
  EXPECT_EQ(Restore("{b} to {c}", {"{b}", "{c}"}, "kx7 nach <PH0>"), (Restored{"{c} nach {b}", {}}))
      << "in any case and order";
  EXPECT_EQ(Restore("x %s y %d", {"%s", "%d"}, "KX7s und <ph0>"), (Restored{"%d und %s", {}}))
      << "the ending of a plural";
  EXPECT_EQ(Restore("x %s y %d", {"%s", "%d"}, "AKX7 KX71 KX7 <ph0>"),
            (Restored{"AKX7 KX71 %d %s", {}}))
      << "other words";
  EXPECT_EQ(Restore("10\u207b\u00b3 now", {"\u207b"}, "10 <ph0>3"), (Restored{"10\u207b3", {}}));
  EXPECT_EQ(Restore("a %s b %d", {"%s", "%d"}, "A <ph0> B KX73"), (Restored{"A %s B %d3", {}}))
      << "rather than a stand-in in the answer";
  EXPECT_EQ(Restore("KX7 %s", {"%s"}, "<ph0> KX7"), (Restored{"%s KX7", {}}))
      << "a code that stands for nothing";
}

TEST(ProtectedSpansTest, SymbolOfANumberTouchesIt) {
  EXPECT_EQ(Restore("costs £40.50 or 5€", {"£", "€"}, "custa <ph0> 40,50 ou 5 KX7"),
            (Restored{"custa £40,50 ou 5€", {}}));
  EXPECT_EQ(Restore("costs £ 40", {"£"}, "custa <ph0> 40"), (Restored{"custa £ 40", {}}));
  EXPECT_EQ(Restore("costs 5€", {"€"}, "custa <ph0> 5"), (Restored{"custa € 5", {}}));
}

TEST(ProtectedSpansTest, SpanAtAWordTouchesOne) {
  EXPECT_EQ(Restore("good😊", {"😊"}, "gut <ph0>"), (Restored{"gut😊", {}}));
  EXPECT_EQ(Restore("a <b>cat</b> now", {"<b>", "</b>"}, "nun <ph0> Katze KX7 da"),
            (Restored{"nun <b>Katze</b> da", {}}));
  EXPECT_EQ(Restore("a <b>cat</b> now", {"<b>", "</b>"}, "nun <ph0> Katze KX7."),
            (Restored{"nun <b>Katze</b>.", {}}));
  EXPECT_EQ(Restore("a <b>cat</b> now", {"<b>", "</b>"}, "eine Katze jetzt"),
            (Restored{"<b>eine</b> Katze jetzt", {0, 1}}))
      << "also where they are forced";
}

TEST(ProtectedSpansTest, RepeatedStandInCountsOnce) {
  EXPECT_EQ(Restore("a %s b", {"%s"}, "a <ph0> b <ph0>."), (Restored{"a %s b.", {}}));
  EXPECT_EQ(Restore("a %s b", {"%s"}, "a <ph0> b <ph0>.", /*once=*/false),
            (Restored{"a %s b %s.", {}}));
}

TEST(ProtectedSpansTest, SpanThatIsLeftOutIsPutWhereItIsInTheSource) {
  EXPECT_EQ(Restore("Write to a@b.de.", {"a@b.de"}, "Schreiben Sie."),
            (Restored{"Schreiben Sie a@b.de.", {0}}));
  EXPECT_EQ(Restore("a@b.de: write", {"a@b.de"}, "schreiben Sie"),
            (Restored{"a@b.de schreiben Sie", {0}}));
  EXPECT_EQ(Restore("one two %s three four", {"%s"}, "eins zwei drei vier"),
            (Restored{"eins zwei %s drei vier", {0}}));
  EXPECT_EQ(Restore("a {0} b {1} c", {"{0}", "{1}"}, "A B KX7 C"),
            (Restored{"A {0} B {1} C", {0}}));
  EXPECT_EQ(Restore("%s", {"%s"}, ""), (Restored{"%s", {0}}));
  EXPECT_EQ(Restore("a %s b", {"%s"}, "", /*once=*/false), (Restored{"", {}}));
}

TEST(ProtectedSpansTest, PlaceholderThatStandsForNothingIsLeftOut) {
  EXPECT_EQ(Restore("the dog", {}, "der <ph0> Hund"), (Restored{"der Hund", {}}));
}

// Random sources, spans and decoded texts: each span is in the answer once, and all text outside
// the stand-ins is unchanged.
TEST(ProtectedSpansTest, EverySpanOccursOnce) {
  std::mt19937 random(7);
  const std::vector<std::string> words = {"der", "Hund", "läuft", "東京", ",", "a."};
  for (int i = 0; i < 20'000; ++i) {
    std::vector<ProtectedSpan> spans;
    std::string source, raw;
    for (uint32_t count = random() % 4; spans.size() < count;) {
      if (random() % 2 == 0) absl::StrAppend(&source, words[random() % words.size()], " ");
      // No word and no other span contains it.
      const std::string text =
          absl::StrCat("{", spans.size(), random() % 2 == 0 ? " KX7" : "", "}");
      const auto begin = static_cast<int>(source.size());
      spans.push_back(
          {begin, begin + static_cast<int>(text.size()), text, static_cast<int>(spans.size())});
      absl::StrAppend(&source, text, " w ");
    }
    std::string rest;
    for (uint32_t length = random() % 8; length > 0; --length) {
      const bool stands = random() % 3 == 0 && !spans.empty();
      const std::string word =
          stands ? kNames[random() % spans.size()] : words[random() % words.size()];
      absl::StrAppend(&raw, raw.empty() ? "" : " ", word);
      if (!stands) rest += word;
    }
    const RestoredText restored = RestoreSpans(raw, kNames, spans, source, /*once=*/true);
    std::string left = restored.text;
    for (const ProtectedSpan& span : spans) {
      const size_t at = left.find(span.text);
      ASSERT_NE(at, std::string::npos) << raw << " -> " << restored.text;
      left.erase(at, span.text.size());
      ASSERT_EQ(left.find(span.text), std::string::npos) << raw << " -> " << restored.text;
    }
    std::erase(left, ' ');
    EXPECT_EQ(left, rest) << raw << " -> " << restored.text;
    int place = 0;
    for (int end = 0; end <= std::ssize(raw); ++end) {
      EXPECT_GE(restored.PlaceOf(end), place) << raw << " -> " << restored.text;
      place = restored.PlaceOf(end);
    }
    EXPECT_LE(place, std::ssize(restored.text));
  }
}

TEST(ProtectedSpansTest, CodesDoNotContainEachOther) {
  for (const std::string a : CodeStandIns()) {
    for (const std::string b : CodeStandIns())
      EXPECT_TRUE(a == b || a.find(b) == std::string::npos) << a << " " << b;
  }
}

}  // namespace
}  // namespace linnet::model
