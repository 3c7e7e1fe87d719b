#include "model/runtime/text/segmenter.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/clauses.h"
#include "model/runtime/text/part_length.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "tests/support/places.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One token per character, and eos.
int CountCharacters(absl::string_view text) {
  return 1 + static_cast<int>(std::count_if(text.begin(), text.end(),
                                            [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> Split(absl::string_view text, absl::string_view language,
                               int max_tokens = 1000) {
  const absl::StatusOr<std::vector<TextSegment>> segments =
      SplitText(text, language, max_tokens, CountCharacters);
  if (!segments.ok()) return {segments.status().ToString()};
  std::vector<std::string> texts;
  for (const TextSegment& segment : *segments) {
    texts.emplace_back(text.substr(segment.begin, segment.end - segment.begin));
  }
  return texts;
}

struct Example {
  const char* language;
  std::vector<std::string> sentences;  // of the text, which is these joined with single blanks
};

TEST(SegmenterTest, SplitsSentencesOfEachLanguage) {
  const std::vector<Example> examples = {
      {"en", {"A dog runs.", "A cat sleeps!", "Does it?", "Yes."}},
      {"en", {"Dr. Smith went home.", "He slept."}},
      {"en", {"Mr. and Mrs. Jones live on Main St.", "They are old.", "Go to St. Petersburg."}},
      {"en", {"It costs 3.14 dollars.", "See e.g. The Times.", "That is, i.e. This one."}},
      {"en", {"J. K. Rowling wrote it.", "J.R.R. Tolkien did not.", "George W. Bush did."}},
      {"en", {"We met at 5 p.m.", "The bus was late.", "At 5 p.m. London sleeps."}},
      {"en", {"He works for Apple Inc.", "She does not.", "The U.S. Army came."}},
      {"en",
       {"\"Are you there?\" she asked.", "\"Yes!\"", "He left.", "(See Fig. 3.)", "Then we go."}},
      {"en", {"Visit https://example.com/?Q=1&b=2.", "Thanks!", "Version v2.Build is out."}},
      {"en", {"1. Open the file.", "2. Close it."}},
      {"en", {"Wait...", "What?", "No way!!", "Really?!", "Yes."}},
      {"en",
       {"I like apples, oranges etc.", "The rest is bad.", "No. 5 Alive is a film.", "He said no.",
        "Then he left."}},
      {"de",
       {"Am 3. Oktober ist Feiertag.", "Dr. Müller kommt z. B. Dienstag.",
        "Das ist z.B. Unsinn, d. h. Quatsch."}},
      {"de",
       {"Er ist 30.", "Sie ist alt.", "Ludwig XIV. König von Frankreich.", "Der 2. Weltkrieg.",
        "Am 3.10. Treffen."}},
      {"de",
       {"Äpfel, Birnen usw.", "Der Rest fehlt.", "Es kostet 3 Mio. Euro.",
        "Prof. Dr. h. c. Meier sprach."}},
      {"de",
       {"Das ist ein Test.", "Der Hund bellt.", "„Hallo.“", "Er ging.", "»Nein!«", "Sie blieb."}},
      {"de",
       {"Siehe S. 5 und Nr. 7 bzw. Abb. 3.", "Das war 1990.", "Danach kam u. a. Herr Maier."}},
      {"de-CH", {"Im Jahr 44 v. Chr. Rom brannte.", "Die Fa. Meier bzw. Herr Meier."}},
      {"fr", {"M. Dupont arrive.", "Il dort."}},
  };
  for (const Example& example : examples) {
    std::string text;
    for (const std::string& sentence : example.sentences)
      text += (text.empty() ? "" : " ") + sentence;
    EXPECT_THAT(Split(text, example.language), ElementsAreArray(example.sentences)) << text;
  }
}

TEST(SegmenterTest, NoBreakSpacesKeepAnAbbreviationTogether) {
  EXPECT_THAT(Split("Viele, z.\u00a0B. Katzen. Und z.\u202fB. Hunde.", "de"),
              ElementsAre("Viele, z.\u00a0B. Katzen.", "Und z.\u202fB. Hunde."));
}

TEST(SegmenterTest, NewLinesAlwaysSplit) {
  EXPECT_THAT(Split("Dr.\nSmith\r\n\r\nand so\u2028on\u0085x", "en"),
              ElementsAre("Dr.", "Smith", "and so", "on", "x"));
}

TEST(SegmenterTest, ExcludesSurroundingWhiteSpace) {
  EXPECT_THAT(Split("\t  One.   Two. \n\n  Three \u3000", "en"),
              ElementsAre("One.", "Two.", "Three"));
}

TEST(SegmenterTest, TreatsByteOrderMarkAsWhiteSpace) {
  EXPECT_THAT(Split("\uFEFFHello.", "en"), ElementsAre("Hello."));
  EXPECT_THAT(Split("\uFEFF \n\tHello. Yes.", "en"), ElementsAre("Hello.", "Yes."));
  EXPECT_THAT(Split("Name\tPrice\t\nA dog\t 5 euros", "en"),
              ElementsAre("Name", "Price", "A dog", "5 euros"));
  EXPECT_THAT(Split("\uFEFF", "en"), IsEmpty());
  EXPECT_THAT(Split("\uFEFF\n", "en"), IsEmpty());
  EXPECT_THAT(Split("a\uFEFFb", "en"), ElementsAre("a\uFEFFb")) << "elsewhere it is a character";
}

TEST(SegmenterTest, TextOfWhiteSpaceHasNoSegments) {
  EXPECT_THAT(Split("", "en"), IsEmpty());
  EXPECT_THAT(Split(" \t\n\r\n \u00a0\u2003", "en"), IsEmpty());
}

TEST(SegmenterTest, SplitsChineseWithoutBlanks) {
  EXPECT_THAT(Split("我爱你。你好吗？", "zh"), ElementsAre("我爱你。", "你好吗？"));
}

TEST(SegmenterTest, UnknownLanguagesUseTheGeneralRules) {
  EXPECT_THAT(Split("Alpha beta. Gamma delta.", "tlh"), ElementsAre("Alpha beta.", "Gamma delta."));
  EXPECT_THAT(Split("Alpha beta. Gamma delta.", "no language at all"),
              ElementsAre("Alpha beta.", "Gamma delta."));
}

TEST(SegmenterTest, SplitsLongSentenceAtClauseMarksIntoLargestParts) {
  // 20 tokens: 19 characters and eos.
  EXPECT_THAT(Split("one two, three four, five six, seven; eight nine ten.", "en", 20),
              ElementsAre("one two,", "three four,", "five six, seven;", "eight nine ten."));
  EXPECT_THAT(Split("we come home (in the evening) and 1,000 birds sing", "en", 26),
              ElementsAre("we come home", "(in the evening)", "and 1,000 birds sing"));
}

TEST(SegmenterTest, SplitsAtWhiteSpaceThenBetweenGraphemes) {
  EXPECT_THAT(Split("one two three four", "en", 10), ElementsAre("one two", "three", "four"));
  EXPECT_THAT(Split("abcdefghijkl mn", "en", 6), ElementsAre("abcde", "fghij", "kl mn"));
  // A letter with two marks is three characters, and stays whole.
  EXPECT_THAT(Split("e\u0301\u0302e\u0301\u0302e\u0301\u0302", "en", 6),
              ElementsAre("e\u0301\u0302", "e\u0301\u0302", "e\u0301\u0302"));
}

TEST(SegmenterTest, MarksPartsOfASentence) {
  const absl::StatusOr<std::vector<TextSegment>> segments =
      SplitText("Short. This one is rather long.", "en", 16, CountCharacters);
  ASSERT_THAT(segments, IsOk());
  EXPECT_THAT(*segments, ElementsAre(Field(&TextSegment::part_of_sentence, false),
                                     Field(&TextSegment::part_of_sentence, true),
                                     Field(&TextSegment::part_of_sentence, true)));
}

TEST(SegmenterTest, RefusesCharacterThatDoesNotFit) {
  EXPECT_THAT(SplitText("ab e\u0301\u0302\u0303", "en", 4, CountCharacters).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("byte 3"), HasSubstr("5 tokens"), HasSubstr("at most 4"))));
}

TEST(SegmenterTest, RefusesInvalidUtf8WithTheByte) {
  EXPECT_THAT(
      SplitText("ab\xff", "en", 100, CountCharacters).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("UTF-8"), HasSubstr("byte 2"))));
}

TEST(SegmenterTest, FindsFirstInvalidByte) {
  EXPECT_EQ(FirstInvalidUtf8(""), -1);
  EXPECT_EQ(FirstInvalidUtf8("abc äöü 日本 😀"), -1);
  EXPECT_EQ(FirstInvalidUtf8(absl::string_view("a\0b", 3)), -1);
  EXPECT_EQ(FirstInvalidUtf8("ä\x80"), 2);
  EXPECT_EQ(FirstInvalidUtf8("a\xc3"), 1);               // cut off
  EXPECT_EQ(FirstInvalidUtf8("a\xc0\xaf"), 1);           // overlong
  EXPECT_EQ(FirstInvalidUtf8("\xed\xa0\x80"), 0);        // a surrogate
  EXPECT_EQ(FirstInvalidUtf8("ab\xf4\x90\x80\x80"), 2);  // beyond U+10FFFF
}

// Words, marks, blanks and odd characters in any order, and occasionally any code point of Unicode.
std::string RandomText(std::mt19937& random) {
  static const char* const kPieces[] = {"Dr.",
                                        "z. B.",
                                        "Haus",
                                        "The",
                                        "dog",
                                        "3.",
                                        "14",
                                        ". ",
                                        "! ",
                                        "? ",
                                        "…",
                                        ", ",
                                        "; ",
                                        " – ",
                                        "—",
                                        "(",
                                        ") ",
                                        "[",
                                        "„",
                                        "“",
                                        "\"",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "\u00a0",
                                        "\u2028",
                                        "\u3000",
                                        "。",
                                        "，",
                                        "日本",
                                        "e\u0301",
                                        "\u0301",
                                        "\u200d",
                                        "👩‍👩‍👧",
                                        "🇩🇪",
                                        ".",
                                        "J.",
                                        "https://a.org/?Q=1",
                                        "supercalifragilistic",
                                        "\u0600",
                                        "\u200b",
                                        "\ufeff",
                                        "A",
                                        "b"};
  std::string text;
  for (int pieces = static_cast<int>(random() % 60); pieces > 0; --pieces) {
    if (random() % 12 != 0) {
      text += kPieces[random() % std::size(kPieces)];
      if (random() % 2 == 0) text += ' ';
      continue;
    }
    UChar32 c = static_cast<UChar32>(random() % 0x110000);
    if (c >= 0xD800 && c < 0xE000) c = 0x20;
    char bytes[4];
    int size = 0;
    U8_APPEND_UNSAFE(bytes, size, c);
    text.append(bytes, size);
  }
  return text;
}

bool IsAllWhiteSpace(absl::string_view text) {
  return SkipWhiteSpace(text, 0) == static_cast<int>(text.size());
}

std::string Places(const std::vector<TextSegment>& segments) {
  std::string places;
  for (const TextSegment& segment : segments)
    absl::StrAppend(&places, segment.begin, "-", segment.end, segment.part_of_sentence, " ");
  return places;
}

std::vector<TextSegment> InSteps(const std::string& text, const char* language, int max_tokens,
                                 const TokenCounter& count, std::mt19937& random) {
  TextSplitter splitter(text, language, max_tokens, count);
  while (!splitter.done()) EXPECT_THAT(splitter.Step(1 + random() % 200), IsOk());
  return splitter.TakeSegments();
}

TEST(SegmenterTest, SegmentsAndWhiteSpaceJoinToTheText) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::Load(SourceDir() / "tests/data/tiny.spm", {});
  ASSERT_THAT(tokenizer, IsOk());
  const TokenCounter count_pieces = [&](absl::string_view text) {
    return 1 + static_cast<int>((*tokenizer)->Encode(text)->size());
  };
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = RandomText(random);
    const char* language = std::array{"en", "de", "fr", "zh", ""}[random() % 5];
    const TokenCounter& count = round % 2 == 0 ? TokenCounter(CountCharacters) : count_pieces;
    const int max_tokens = std::array{40, 60, 100, 1000}[random() % 4];
    const absl::StatusOr<std::vector<TextSegment>> segments =
        SplitText(text, language, max_tokens, count);
    ASSERT_THAT(segments, IsOk()) << text;
    int last = 0;
    for (const TextSegment& segment : *segments) {
      const int from = std::max(last, ByteOrderMarkBytes(text));  // which is white space
      ASSERT_TRUE(IsAllWhiteSpace(text.substr(from, segment.begin - from))) << text;
      ASSERT_LT(segment.begin, segment.end) << text;
      ASSERT_GE(segment.begin, last) << text;
      const std::string part = text.substr(segment.begin, segment.end - segment.begin);
      ASSERT_EQ(SkipWhiteSpace(part, 0), 0) << text;
      ASSERT_EQ(SkipWhiteSpaceBefore(part, static_cast<int>(part.size())),
                static_cast<int>(part.size()))
          << text;
      ASSERT_EQ(FirstInvalidUtf8(part), -1) << text;
      ASSERT_LE(count(part), max_tokens) << text;
      for (int at = 0; at < part.size(); at = CharacterAt(part, at).end) {
        ASSERT_FALSE(IsNewLine(CharacterAt(part, at).code_point)) << text;
      }
      last = segment.end;
    }
    const int rest = std::max(last, ByteOrderMarkBytes(text));
    ASSERT_TRUE(IsAllWhiteSpace(text.substr(rest))) << text;
    ASSERT_EQ(Places(*segments), Places(InSteps(text, language, max_tokens, count, random)));
  }
}

// A sentence is cut in the same way while its end is not yet known.
TEST(SegmenterTest, PartsDoNotDependOnHowFarTheSentenceIsKnown) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::string text = "A";
    while (text.size() < 2000) text += RandomText(random);
    const auto size = SkipWhiteSpaceBefore(text, static_cast<int>(text.size()));
    const TokenCounter count = CountCharacters;
    PartLength length(100);
    if (random() % 2 == 0) length.Add(1 + random() % 200, 100);
    PartLength same = length;
    SentenceCutter whole(text, 0, 100, count, same);
    SentenceCutter growing(text, 0, 100, count, length);
    for (int known = 0;;) {
      const bool ends = known == size;
      const auto part = growing.Next(known, ends);
      ASSERT_THAT(part, IsOk()) << text;
      if (part->has_value()) {
        const auto expected = whole.Next(size, true);
        ASSERT_EQ(Places({**part}), Places({**expected})) << text;
      } else if (ends) {
        break;
      }
      known = std::min<int>(size, known + random() % 100);
      while (known < size && U8_IS_TRAIL(text[known])) ++known;
    }
    ASSERT_FALSE(whole.Next(size, true)->has_value());
  }
}

// Bytes passed to the token counter per byte of the text.
double CountedPerByte(const std::string& text, int max_tokens,
                      const TokenCounter& count = CountCharacters) {
  int64_t counted = 0;
  const auto segments = SplitText(text, "en", max_tokens, [&](absl::string_view part) {
    counted += static_cast<int64_t>(part.size());
    return count(part);
  });
  EXPECT_THAT(segments, IsOk());
  return static_cast<double>(counted) / static_cast<double>(text.size());
}

// A tokenizer cannot stop within a text, so a text that it need not read is never given to it.
TEST(SegmenterTest, LittleIsCountedAtOnce) {
  constexpr int kMaxTokens = 200;
  for (const std::string piece : {"x", "a.b. ", "\xD0\x96", "the dog ran and ", "(", "Mr. "}) {
    for (const size_t size : {20'000, 100'000}) {
      std::string text;
      while (text.size() < size) text += piece;
      size_t longest = 0;
      const auto count = [&](absl::string_view part) {
        longest = std::max(longest, part.size());
        return CountCharacters(part);
      };
      ASSERT_TRUE(SplitText(text, "en", kMaxTokens, count).ok());
      EXPECT_LE(longest, 3000) << piece;
    }
  }
}

// Some text has few tokens however long it is: white space, and what a model cannot read.
TEST(SegmenterTest, TextOfFewTokensIsCutByItsBytes) {
  constexpr int64_t kMax = 16 << 10;
  EXPECT_EQ(MaxSegmentBytes(256), kMax);
  EXPECT_EQ(MaxSegmentBytes(1024), 2 * kMax);
  const std::string spaces(1'000'000, ' ');
  std::string unread, words;
  while (unread.size() < 1'000'000) unread += "\xD0\x96";
  while (words.size() < 1'000'000) words += "\xD0\x96\xD0\x96\xD0\x96, ";
  for (const std::string& text : {"a" + spaces + "b", unread, words}) {
    int64_t counted = 0;
    TextSplitter splitter(text, "en", 200, [&](absl::string_view part) {
      EXPECT_LE(part.size(), kMax);
      counted += std::ssize(part);
      return 2;
    });
    int64_t most = 0;
    while (!splitter.done()) {
      const int64_t before = counted;
      ASSERT_THAT(splitter.Step(1000), IsOk());
      most = std::max(most, counted - before);
    }
    EXPECT_LE(most, 3 * kMax) << "a step cuts a part: what fits, and at which mark it ends";
    EXPECT_LE(counted, 4 * std::ssize(text));
    int end = 0;
    for (const TextSegment& segment : splitter.segments()) {
      ASSERT_LE(segment.end - segment.begin, kMax);
      ASSERT_TRUE(segment.part_of_sentence);
      ASSERT_TRUE(IsAllWhiteSpace(text.substr(end, segment.begin - end)));
      end = segment.end;
    }
    ASSERT_TRUE(IsAllWhiteSpace(text.substr(end)));
  }
  // A character with as many accents is none.
  std::string accents = "a";
  while (accents.size() < 20'000) accents += "\xCC\x81";
  EXPECT_THAT(SplitText("b " + accents, "en", 200, [](absl::string_view) { return 2; }).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the character at byte 2 has 20001 bytes, at most 16384 are read"));
}

// Behind so many protected spans that no more have a stand-in, each byte has many more tokens: the
// end of a part is not expected where the bytes before it would let it be.
TEST(SegmenterTest, TokensThatBecomeDenserAreCountedFewTimes) {
  const TokenCounter count = [](absl::string_view part) {
    constexpr int kSparse = 1100;
    const auto bytes = static_cast<int>(part.size());
    return 1 + std::min(bytes, kSparse) / 7 + std::max(bytes - kSparse, 0);
  };
  std::string text;
  while (text.size() < 200'000) {
    std::string sentence = "A";
    while (sentence.size() < 4000) sentence += " dog runs";
    absl::StrAppend(&text, sentence, ".\n");
  }
  EXPECT_LE(CountedPerByte(text, 256, count), 2.2);
}

// Bytes passed to the token counter, and the work.
std::pair<int64_t, int64_t> CostOfTooMany(const std::string& text, size_t max_segments) {
  int64_t counted = 0, work = 0;
  TextSplitter splitter(
      text, "en", 200,
      [&](absl::string_view part) {
        counted += std::ssize(part);
        return CountCharacters(part);
      },
      max_segments);
  while (!splitter.done()) {
    const absl::StatusOr<int64_t> step = splitter.Step(100);
    if (!step.ok()) {
      EXPECT_THAT(step.status(), StatusIs(absl::StatusCode::kOutOfRange));
      return {counted, work};
    }
    work += *step;
  }
  EXPECT_LE(splitter.segments().size(), max_segments);
  return {counted, work};
}

TEST(SegmenterTest, TextOfTooManySentencesIsNotTokenised) {
  std::string text, initials;
  for (int i = 0; i < 1000; ++i) text += i % 3 == 0 ? "A dog runs. " : "It sleeps.\n \n";
  while (initials.size() < 100'000) initials += "Z. ";
  EXPECT_EQ(CostOfTooMany(text, 900).first, 0);
  const auto [counted, work] = CostOfTooMany(text, 1000);
  EXPECT_GE(counted, 10'000);
  EXPECT_LE(counted, std::ssize(text));
  // A text of few sentences is tokenised at once.
  const int64_t once = CostOfTooMany(initials, initials.size()).second;
  EXPECT_LE(CostOfTooMany(initials, 20'000).second, once * 11 / 10);
}

// Finds the span among those between braces.
SpanEnd BetweenBraces(const std::string& text) {
  return [text](int at) {
    const size_t open = text.substr(0, at).rfind('{');
    if (open == std::string::npos || open == static_cast<size_t>(at)) return at;
    const size_t close = text.find('}', open);
    if (close == std::string::npos || close + 1 <= static_cast<size_t>(at)) return at;
    return static_cast<int>(close) + 1;
  };
}

TEST(SegmenterTest, NothingEndsInsideAProtectedSpan) {
  const std::vector<std::vector<std::string>> examples = {
      {"See {n, plural, one {A file. It is old} now.", "Go on."},
      {"A {b.\n\nC. D} e.", "F."},
      {"{A.\tB. } C.", "D."},
      {"One.", "Two {three. } {Four. Five}.", "Six."},
  };
  for (const std::vector<std::string>& sentences : examples) {
    const std::string text = absl::StrJoin(sentences, "\n");
    TextSplitter splitter(text, "en", 1000, CountCharacters, 1000, BetweenBraces(text));
    while (!splitter.done()) ASSERT_THAT(splitter.Step(1), IsOk());
    std::vector<std::string> found;
    for (const TextSegment& segment : splitter.segments())
      found.push_back(text.substr(segment.begin, segment.end - segment.begin));
    EXPECT_EQ(found, sentences);
  }
}

// However many sentences would end inside a span, its text is counted about as often as any other.
TEST(SegmenterTest, LongSpanOfManySentencesIsCountedFewTimes) {
  std::string text = "{";
  while (text.size() < 200'000) text += "Z. A dog runs.\n";
  text += "}";
  const auto size = static_cast<int>(text.size());
  for (const int tokens : {2, 2000}) {  // of any text
    int64_t counted = 0, work = 0;
    TextSplitter splitter(
        text, "en", 200,
        [&](absl::string_view part) {
          counted += std::ssize(part);
          return std::min(tokens, CountCharacters(part));
        },
        text.size(), [&](int at) { return at == 0 ? at : size; });
    while (!splitter.done()) {
      const absl::StatusOr<int64_t> step = splitter.Step(1000);
      ASSERT_THAT(step, IsOk());
      work += *step;
    }
    EXPECT_LE(counted, 4 * size);
    EXPECT_GE(work, size / 8);
    for (const TextSegment& segment : splitter.segments()) EXPECT_TRUE(segment.part_of_sentence);
  }
}

// Bytes of characters that a vocabulary has no piece for take longer than other tokens.
TEST(SegmenterTest, TokensOfBytesAreMoreWork) {
  const auto work = [](const std::string& piece) {
    std::string text;
    while (text.size() < 50'000) text += piece;
    TextSplitter splitter(text, "en", 200,
                          [](absl::string_view part) { return static_cast<int>(part.size()); });
    int64_t all = 0;
    while (!splitter.done()) all += splitter.Step(1000).value_or(0);
    return static_cast<double>(all);
  };
  EXPECT_GT(work("\xD0\x96"), 2.5 * work("x"));
  EXPECT_GT(work("the \xD0\x96 "), 1.5 * work("the x "));
}

TEST(SegmenterTest, TakesLinearTime) {
  for (const char* piece : {"word ", "x", "word, ", "Sentence. ", "J. ", "Mr. ", "a.b. ", "(", "。",
                            "?a", "。\"a", "word, word word "}) {
    std::string small, large;
    while (small.size() < 10'000) small += piece;
    while (large.size() < 300'000) large += piece;
    EXPECT_LT(CountedPerByte(large, 200), 1.5 * CountedPerByte(small, 200) + 1) << piece;
    // To see that the sentence is too long, that a part fits, and that no longer one does.
    EXPECT_LT(CountedPerByte(large, 200), 3.2) << piece;
  }
}

// Where bytes do not tell how many tokens there are, a part is not counted many times either.
TEST(SegmenterTest, UnevenTokensAreCountedFewTimes) {
  const auto count = [](absl::string_view part) {
    return CountCharacters(absl::StrReplaceAll(part, {{"international", "i"}}));
  };
  for (const std::string piece :
       {"international<b>{international}", "international, (A. B.) {x}international \""}) {
    std::string text;
    while (text.size() < 300'000) text += piece;
    EXPECT_LT(CountedPerByte(text, 200, count), 2.8) << piece;
  }
}

}  // namespace
}  // namespace linnet::model
