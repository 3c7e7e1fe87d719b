// Laws of the codes over random fragments, translations and alignments.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/markup/markup_tokenizer.h"
#include "tests/server/markup/marked_fixture.h"

namespace linnet::server {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int Below(int end) { return static_cast<int>(engine_() % static_cast<uint32_t>(end)); }
  bool OneIn(int n) { return Below(n) == 0; }

 private:
  std::mt19937 engine_;
};

// A fragment of properly nested elements, each with an id of its own.
class Fragment {
 public:
  explicit Fragment(Random& random) : random_(random) {}

  std::string Make() {
    std::string out;
    for (int i = random_.Below(4); i >= 0; --i) Block(0, out);
    return out;
  }

 private:
  void Block(int depth, std::string& out) {
    static constexpr const char* kBlocks[] = {"p", "div", "li", "td"};
    const std::string name = kBlocks[random_.Below(4)];
    absl::StrAppend(&out, "<", name, " id=n", ++ids_, ">", random_.OneIn(2) ? "\n  " : "");
    if (depth < 2 && random_.OneIn(4)) {
      for (int i = random_.Below(3); i >= 0; --i) Block(depth + 1, out);
    } else {
      Line(0, out);
    }
    absl::StrAppend(&out, "</", name, ">", random_.OneIn(2) ? "\n" : "");
  }

  void Line(int depth, std::string& out) {
    static constexpr const char* kInline[] = {"b", "i", "a", "span"};
    for (int i = random_.Below(4); i >= 0; --i) {
      switch (random_.Below(depth < 4 ? 8 : 5)) {
        case 0:
          absl::StrAppend(&out, random_.OneIn(2) ? "<img id=n" : "<wbr id=n", ++ids_, ">");
          break;
        case 1:
          if (random_.OneIn(3)) {
            absl::StrAppend(&out, "<br id=n", ++ids_, ">");
          } else {
            absl::StrAppend(&out, "<!-- n", ++ids_, "-->");
          }
          break;
        case 2:
          absl::StrAppend(&out, " <code id=n", ids_ + 1, ">c &amp; <b id=n", ids_ + 2,
                          ">d</b></code>", random_.OneIn(2) ? " " : "");
          ids_ += 2;
          break;
        case 3:
        case 4:
          Words(out);
          break;
        default: {
          const std::string name = kInline[random_.Below(4)];
          absl::StrAppend(&out, "<", name, " id=n", ++ids_, ">");
          Line(depth + 1, out);
          absl::StrAppend(&out, "</", name, ">");
        }
      }
    }
  }

  void Words(std::string& out) {
    static constexpr const char* kWords[] = {"a",      "bc", " d ",   "e. ",
                                             " &lt;f", "g,", "  h\n", "12. "};
    for (int i = random_.Below(4); i >= 0; --i) out += kWords[random_.Below(8)];
  }

  Random& random_;
  int ids_ = 0;
};

// Tags and other marks in any order.
std::string TagSoup(Random& random) {
  static constexpr const char* kParts[] = {
      "<b>",      "</b>",       "<i>",  "</i>",  "<p>",
      "</p>",     "<br>",       "<!--", "-->",   "<img alt='a b'>",
      "word",     "x. ",        " ",    "&amp;", "<pre>",
      "</pre>",   "<a href=\"", "\">",  "<",     "<script>",
      "</script>"};
  std::string out;
  for (int i = random.Below(20); i >= 0; --i) out += kParts[random.Below(21)];
  return out;
}

// Words of a translation without regard to the source, and links at random. Every word is another
// one, so that their order shows.
struct RandomTranslation {
  Random& random;
  int words = 0;
  std::vector<std::string> all = {};

  void operator()(absl::string_view source, std::string& translation,
                  MarkedAnswer::Segment& segment) {
    const bool attribute = random.OneIn(10);
    segment.words.source = WordRanges(source);
    for (int i = random.Below(8); i > 0 && !attribute; --i) {
      if (!translation.empty()) translation += ' ';
      const auto begin = static_cast<int>(translation.size());
      const int stand_in = random.Below(std::ssize(source) + 1);
      if (MarkedText::StandInAt(source, stand_in) != 0) {
        absl::StrAppend(&translation, source.substr(stand_in, MarkedText::kStandInBytes));
      } else {
        all.push_back(absl::StrCat(random.OneIn(5) ? "&" : "t", ++words));
        translation += all.back();
      }
      segment.words.target.push_back({begin, static_cast<int>(translation.size())});
    }
    const auto sources = static_cast<int>(segment.words.source.size());
    const auto targets = static_cast<int>(segment.words.target.size());
    for (int target = 0; target < targets; ++target) {
      for (int i = random.Below(4); i > 0; --i)
        segment.words.links.push_back(
            {random.Below(sources), target, static_cast<float>(random.Below(10)) / 10});
    }
  }
};

// The marks of a fragment, sorted; those without text have one character that is not white space.
std::vector<std::string> Marks(const std::string& fragment) {
  MarkupTokenizer tokenizer(fragment, MarkupSyntax::kHtml);
  MarkupToken token;
  std::vector<std::string> marks;
  while (tokenizer.Next(token)) {
    if (token.kind != MarkupToken::Kind::kText)
      marks.push_back(fragment.substr(token.begin, token.end - token.begin));
  }
  std::sort(marks.begin(), marks.end());
  return marks;
}

// The elements around each element and each mark, by their tags, from the outside to the inside, if
// every end tag closes the last element that is open.
std::map<std::string, std::vector<std::string>> Ancestors(const std::string& fragment) {
  MarkupTokenizer tokenizer(fragment, MarkupSyntax::kHtml);
  MarkupToken token;
  std::map<std::string, std::vector<std::string>> ancestors;
  std::vector<std::pair<std::string, std::string>> open;
  while (tokenizer.Next(token)) {
    const std::string mark = fragment.substr(token.begin, token.end - token.begin);
    const std::string name(token.name);
    if (token.kind == MarkupToken::Kind::kStartTag || token.kind == MarkupToken::Kind::kOther) {
      std::vector<std::string>& own = ancestors[mark];
      for (const auto& [around, tag] : open) own.push_back(tag);
    }
    if (token.kind == MarkupToken::Kind::kStartTag && name != "img" && name != "wbr" &&
        name != "br")
      open.emplace_back(name, mark);
    if (token.kind == MarkupToken::Kind::kEndTag) {
      EXPECT_EQ(open.empty() ? "" : open.back().first, name) << fragment;
      if (!open.empty()) open.pop_back();
    }
  }
  return ancestors;
}

bool IsLink(absl::string_view tag) { return absl::StartsWith(tag, "<a "); }

// Expects that everything is within the elements that it was in, in their order. An element may be
// within more of them, and what it holds as well, but no link within a link.
void ExpectSameTree(const std::string& fragment, const std::string& answer) {
  const auto before = Ancestors(fragment), after = Ancestors(answer);
  for (const auto& [mark, ancestors] : before) {
    const std::vector<std::string>& now = after.at(mark);
    auto next = ancestors.begin();
    for (const std::string& tag : now) next += next != ancestors.end() && tag == *next;
    ASSERT_TRUE(next == ancestors.end()) << mark << "\n" << fragment << "\n" << answer;
    const auto links = [](const auto& tags) {
      return std::count_if(tags.begin(), tags.end(), IsLink) + 0;
    };
    if (IsLink(mark)) {
      ASSERT_LE(links(now), links(ancestors)) << mark << "\n" << fragment << "\n" << answer;
    }
    // What has no end stays in its element.
    if (!absl::StartsWith(mark, "<b ") && !absl::StartsWith(mark, "<i ") && !IsLink(mark) &&
        !absl::StartsWith(mark, "<span ") && !ancestors.empty()) {
      ASSERT_EQ(now.back(), ancestors.back()) << mark << "\n" << fragment << "\n" << answer;
    }
  }
}

// How many fragments each law is tried on.
int Fragments() {
  const char* const count = std::getenv("LINNET_MARKUP_FRAGMENTS");
  return count == nullptr ? 1000 : std::atoi(count);
}

TEST(MarkupPropertyTest, CodesReturnOnceInTheirTree) {
  for (int seed = 0; seed < Fragments(); ++seed) {
    Random random(seed);
    const std::string fragment = Fragment(random).Make();
    RandomTranslation translation = {random};
    const std::string answer = AnswerOf(fragment, {}, std::ref(translation));
    ASSERT_EQ(Marks(answer), Marks(fragment)) << fragment << "\n" << answer;
    ExpectSameTree(fragment, answer);
    if (HasFatalFailure()) return;
    // Links side by side in the source, which are apart, may have other elements between them now.
    std::string text =
        MarkedText(absl::StrReplaceAll(answer, {{"<a ", " <a "}, {"</a>", "</a> "}}), {}).text();
    for (size_t at = 0; at < text.size(); ++at) {
      while (MarkedText::StandInAt(text, at) != 0) text.erase(at, MarkedText::kStandInBytes);
    }
    const std::vector<std::string> words =
        absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    ASSERT_EQ(words, translation.all) << fragment << "\n" << answer;
  }
  RecordProperty("fragments", Fragments());
}

// Elements side by side, also with others in them that have all of their text, and translations
// with any number of words. The last text of a fragment is one word.
TEST(MarkupPropertyTest, ElementsWithWordsEncloseWords) {
  for (int seed = 0; seed < Fragments(); ++seed) {
    Random random(seed);
    std::string fragment;
    int ids = 0;
    for (int i = random.Below(5); i >= 0; --i) {
      std::string start, end;
      for (int depth = random.Below(3); depth >= 0; --depth) {
        const std::string name = random.OneIn(2) ? "b" : "i";
        absl::StrAppend(&start, "<", name, " id=n", ++ids, ">");
        end = absl::StrCat("</", name, ">", end);
      }
      absl::StrAppend(&fragment, start, random.OneIn(3) ? "x y" : "z", end,
                      random.OneIn(2) ? " " : "", random.OneIn(3) ? "w" : "",
                      random.OneIn(2) ? " " : "");
    }
    RandomTranslation translation = {random};
    const std::string answer = AnswerOf(fragment, {}, std::ref(translation));
    ASSERT_EQ(Marks(answer), Marks(fragment)) << fragment << "\n" << answer;
    ExpectSameTree(fragment, answer);
    if (HasFatalFailure()) return;
    if (translation.all.empty()) continue;
    for (int id = 1; id <= ids; ++id) {
      const std::string tag = absl::StrCat("id=n", id, ">");
      std::string rest = answer.substr(answer.find(tag) + tag.size());
      int depth = 1;
      while (absl::StartsWith(rest, "<") && depth > 0) {
        depth += rest[1] == '/' ? -1 : 1;
        rest = rest.substr(rest.find('>') + 1);
      }
      ASSERT_GT(depth, 0) << tag << "\n" << fragment << "\n" << answer;
    }
  }
}

TEST(MarkupPropertyTest, MarksOfTagSoupReturnOnce) {
  for (int seed = 0; seed < Fragments(); ++seed) {
    Random random(seed);
    const std::string fragment = TagSoup(random);
    const std::string answer = AnswerOf(fragment, {}, RandomTranslation{random});
    ASSERT_EQ(Marks(answer), Marks(fragment)) << fragment << "\n" << answer;
  }
}

TEST(MarkupPropertyTest, InlineTagsDoNotChangeTheText) {
  for (int seed = 0; seed < Fragments(); ++seed) {
    Random random(seed);
    // Links side by side are in lines of their own.
    const std::string fragment =
        absl::StrReplaceAll(Fragment(random).Make(), {{"<a ", "<u "}, {"</a>", "</u>"}});
    MarkupTokenizer tokenizer(fragment, MarkupSyntax::kHtml);
    MarkupToken token;
    std::string without;
    int code = 0;
    while (tokenizer.Next(token)) {
      const std::string name(token.name);
      if (name == "code") code += token.kind == MarkupToken::Kind::kStartTag ? 1 : -1;
      const bool is_inline =
          name == "b" || name == "i" || name == "u" || name == "span" || name == "wbr";
      if (!is_inline || code > 0) without += fragment.substr(token.begin, token.end - token.begin);
    }
    ASSERT_EQ(MarkedText(fragment, {}).text(), MarkedText(without, {}).text()) << fragment;
  }
}

// All that is known of a fragment.
std::string Description(const MarkedText& text) {
  std::string all = text.text();
  for (const Code& code : text.codes()) {
    absl::StrAppend(&all, "\n", code.source.begin, "-", code.source.end, " ", code.at, " ",
                    static_cast<int>(code.kind), code.visible, code.space_before, code.space_after,
                    code.closes, " ", static_cast<uint32_t>(code.stand_in), " ", code.partner, " ",
                    code.line);
  }
  for (const AttributeText& attribute : text.attributes())
    absl::StrAppend(&all, "\n", attribute.source.begin, " ", attribute.plain.begin);
  for (int at = 0; at < std::ssize(text.text()) - 1; ++at) {
    if (text.text()[at] == '\n') continue;
    const ByteRange range = text.SourceRange(at, at + 1);
    absl::StrAppend(&all, " ", range.begin, "-", range.end);
  }
  return all;
}

TEST(MarkupPropertyTest, StepsReadWhatOneStepReads) {
  for (int seed = 0; seed < Fragments(); ++seed) {
    Random random(seed);
    std::string fragment = random.OneIn(2) ? TagSoup(random) : Fragment(random).Make();
    for (int i = random.Below(8); i >= 0; --i)
      fragment.insert(random.Below(static_cast<int>(fragment.size()) + 1),
                      random.OneIn(2) ? "&amp; &eacute;" : "<code>x</code> <kbd>y</kbd>");
    const MarkupOptions options = {.syntax =
                                       random.OneIn(2) ? MarkupSyntax::kHtml : MarkupSyntax::kXml};
    MarkedTextReader reader(fragment, options);
    while (!reader.done()) reader.Step(1 + random.Below(12));
    ASSERT_EQ(Description(reader.Take()), Description(MarkedText(fragment, options))) << fragment;
  }
}

// A step that was asked for little work has done little, whatever the fragment holds.
TEST(MarkupPropertyTest, EveryStepIsSmall) {
  constexpr int64_t kWork = 1000;
  const MarkupOptions options;
  for (const std::string piece :
       {"<b>", "x", "&amp;", "<code>x</code>", "<p title='a b c'>", "<sub>1", "&", "<", "</b>"}) {
    std::string fragment;
    while (fragment.size() < 200'000) fragment += piece;
    MarkedTextReader reader(fragment, options);
    int steps = 0;
    for (; !reader.done(); ++steps) ASSERT_LE(reader.Step(kWork), kWork + 10) << piece;
    EXPECT_GE(steps, 12) << piece;
  }
  std::string tag = "<b";
  while (tag.size() < 200'000) tag += " a=b";
  MarkedTextReader reader(tag += ">", options);
  EXPECT_LE(reader.Step(kWork), kWork + static_cast<int64_t>(tag.size()) / 8) << "one tag";
}

TEST(MarkupPropertyTest, DeepAndWideFragmentsTakeLinearTime) {
  constexpr int kCount = 20000;
  std::string deep, wide, shared;
  for (int i = 0; i < kCount; ++i) deep += "<b><img>";
  deep += "a b c";
  for (int i = 0; i < kCount; ++i) deep += "</b>";
  deep += " d";
  for (int i = 0; i < kCount; ++i) wide += i % 2 == 0 ? "<i>" : "</b>&";
  for (int i = 0; i < kCount; ++i) shared += "<u>";
  shared += "x";
  for (int i = 0; i < kCount; ++i) shared += "</u>";
  for (int i = 0; i < kCount; ++i) shared += "<i>y</i>";
  for (const std::string& fragment : {deep, wide, shared}) {
    Random random(1);
    const std::string answer = AnswerOf(fragment, {}, RandomTranslation{random});
    EXPECT_EQ(Marks(answer), Marks(fragment));
    const MarkedText text(fragment, {});
    EXPECT_LE(text.bytes(), MarkedText::MaxBytes(std::ssize(fragment)));
  }
}

}  // namespace
}  // namespace linnet::server
