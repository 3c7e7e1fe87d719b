#include "model/runtime/text/paragraphs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/letters.h"

namespace linnet::model {

// A line without its end.
struct ParagraphLine {
  absl::string_view text;  // without white space at its ends
  int indentation = 0;     // in columns
  int columns = 0;         // the indentation included
  bool blank = false;
  bool item = false;   // begins an item of a list
  bool alone = false;  // is never joined
  bool several_words = false;
};

namespace {

using Line = ParagraphLine;

constexpr int kMinWidth = 40;
constexpr int kMaxWidth = 160;
// Work (TextSplitter::Step): a line is read and joined in the time to tokenise two bytes of prose,
// and eight bytes of it in that of one.
constexpr int64_t kWorkOfLine = 1;
constexpr int64_t kBytesOfLinePerWork = 8;
constexpr UChar32 kSoftHyphen = 0xAD;
constexpr UChar32 kHyphen = 0x2010;

bool IsWide(UChar32 c) {
  const int width = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH;
}

// True for letters and marks that stand beside others without a blank. Korean puts blanks.
bool IsUnspaced(UChar32 c) {
  if (c < 0x80) return false;
  UErrorCode error = U_ZERO_ERROR;
  if (uscript_getScript(c, &error) == USCRIPT_HANGUL) return false;
  return IsUnspacedScript(c) || (IsWide(c) && (u_isalnum(c) || u_ispunct(c)));
}

// Counts no further than a line that is not wrapped.
int Columns(absl::string_view text) {
  int columns = 0;
  for (int at = 0; at < std::ssize(text) && columns <= kMaxWidth;) {
    const Character character = CharacterAt(text, at);
    if (character.code_point == '\t') {
      columns += 8 - columns % 8;
    } else if ((U_GET_GC_MASK(character.code_point) & (U_GC_M_MASK | U_GC_CF_MASK)) == 0) {
      columns += IsWide(character.code_point) ? 2 : 1;
    }
    at = character.end;
  }
  return columns;
}

// The number of digits, at most three, or one letter at the start of the text: a list counts by
// them.
size_t CountMark(absl::string_view text) {
  size_t digits = 0;
  while (digits < std::min<size_t>(text.size(), 4) && absl::ascii_isdigit(text[digits])) ++digits;
  if (digits > 0) return digits <= 3 ? digits : 0;
  return !text.empty() && absl::ascii_isalpha(text[0]) ? 1 : 0;
}

// True for a text that begins with a list mark and a blank, or with a mark of a quotation, a
// heading or a table.
bool BeginsItem(absl::string_view text) {
  for (const absl::string_view mark : {">", "#", "|"}) {
    if (absl::StartsWith(text, mark)) return true;
  }
  absl::string_view rest = text;
  for (const absl::string_view mark :
       {"-", "*", "+", "•", "‣", "◦", "·", "●", "○", "▪", "■", "–", "—"}) {
    if (absl::StartsWith(text, mark)) rest = text.substr(mark.size());
  }
  if (rest.size() == text.size()) {
    const bool bracket = absl::StartsWith(text, "(");
    rest.remove_prefix(bracket ? 1 : 0);
    const size_t count = CountMark(rest);
    if (count == 0) return false;
    // "A. Smith" is no item: a letter needs a bracket.
    const bool letter = absl::ascii_isalpha(rest[0]);
    rest.remove_prefix(count);
    const bool dot = absl::StartsWith(rest, ".");
    if (!absl::StartsWith(rest, ")") && (!dot || letter || bracket)) return false;
    rest.remove_prefix(1);
  }
  return rest.empty() || IsWhiteSpace(CharacterAt(rest, 0).code_point);
}

Line MeasureLine(absl::string_view raw) {
  Line line;
  const int begin = SkipWhiteSpace(raw, 0);
  const int end = std::max(begin, SkipWhiteSpaceBefore(raw, static_cast<int>(raw.size())));
  line.text = raw.substr(begin, end - begin);
  line.blank = line.text.empty();
  if (line.blank) return line;
  line.indentation = Columns(raw.substr(0, begin));
  line.columns = line.indentation + Columns(line.text);
  line.item = BeginsItem(line.text);
  line.alone = !HasLetter(line.text) || absl::StrContains(line.text, '\t');
  for (int at = 0; at < std::ssize(line.text) && !line.several_words;) {
    const Character character = CharacterAt(line.text, at);
    line.several_words = IsWhiteSpace(character.code_point) || IsUnspaced(character.code_point);
    at = character.end;
  }
  return line;
}

// The first word of a line; in a script without blanks its first character.
absl::string_view OpeningWord(absl::string_view text) {
  int end = 0;
  while (end < std::ssize(text)) {
    const Character character = CharacterAt(text, end);
    if (IsWhiteSpace(character.code_point)) break;
    if (IsUnspaced(character.code_point)) {
      if (end == 0) end = character.end;
      break;
    }
    end = character.end;
  }
  return text.substr(0, end);
}

bool IsHyphen(UChar32 c) { return c == '-' || c == kHyphen; }

// The end of the characters of a word, hyphens included, from `at` on.
int CompoundEnd(absl::string_view text, int at) {
  while (at < std::ssize(text)) {
    const Character character = CharacterAt(text, at);
    if (!InWord(character.code_point) && !IsHyphen(character.code_point)) break;
    at = character.end;
  }
  return at;
}

int CompoundBegin(absl::string_view text, int at) {
  while (at > 0) {
    const Character character = CharacterBefore(text, at);
    if (!InWord(character.code_point) && !IsHyphen(character.code_point)) break;
    at = character.begin;
  }
  return at;
}

// Adds the words with hyphens of a line.
void AddCompounds(absl::string_view line, std::set<absl::string_view>& compounds) {
  const auto has_hyphen = [](absl::string_view text) {
    return absl::StrContains(text, '-') || absl::StrContains(text, "\u2010");
  };
  if (!has_hyphen(line)) return;
  for (int at = 0; at < std::ssize(line);) {
    const int end = CompoundEnd(line, at);
    const absl::string_view found = line.substr(at, end - at);
    if (has_hyphen(found)) compounds.insert(found);
    at = end > at ? end : CharacterAt(line, at).end;
  }
}

// The longest line of several words; 0 if the block is not wrapped.
int WrapWidth(std::span<const Line> block) {
  int width = 0;
  for (const Line& line : block) {
    if (line.several_words && !line.alone) width = std::max(width, line.columns);
  }
  return width < kMinWidth || width > kMaxWidth ? 0 : width;
}

// True if `line`, the `first` of its paragraph or not, goes on in `next`.
bool ContinuesIn(const Line& line, bool first, const Line& next, int width) {
  if (width == 0 || line.alone || next.alone || next.item) return false;
  const bool hanging = first && line.item && next.indentation > line.indentation;
  const bool first_indented = first && !line.item && next.indentation < line.indentation;
  if (next.indentation != line.indentation && !hanging && !first_indented) return false;
  return line.columns + 1 + Columns(OpeningWord(next.text)) > width - width / 10;
}

bool IsConjunction(absl::string_view word) {
  constexpr std::array<absl::string_view, 14> kWords = {
      "and", "or", "to", "und", "oder", "bis", "sowie", "et", "ou", "y", "e", "o", "en", "of"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// The joint of two lines: so many bytes at the end of the first are left out, and a blank is put
// between them or not.
struct Joint {
  int removed = 0;
  bool blank = true;
};

Joint ChooseJoint(absl::string_view line, absl::string_view next,
                  const std::set<absl::string_view>& compounds) {
  const Character last = CharacterBefore(line, static_cast<int>(line.size()));
  const Character first = CharacterAt(next, 0);
  if (last.code_point == kSoftHyphen) return {.removed = last.end - last.begin, .blank = false};
  if (IsHyphen(last.code_point) && last.begin > 0 && InWord(first.code_point)) {
    const UChar32 before = CharacterBefore(line, last.begin).code_point;
    if (!InWord(before)) return {};
    if (!u_isalpha(before) || !u_islower(first.code_point)) return {.blank = false};
    const absl::string_view word = next.substr(0, CompoundEnd(next, 0));
    if (IsConjunction(word)) return {};
    const int begin = CompoundBegin(line, static_cast<int>(line.size()));
    const bool hyphenated = compounds.contains(absl::StrCat(line.substr(begin), word));
    return {.removed = hyphenated ? 0 : last.end - last.begin, .blank = false};
  }
  return {.blank = !IsUnspaced(last.code_point) && !IsUnspaced(first.code_point)};
}

}  // namespace

JoinedText::Range JoinedText::SourceOf(int begin, int end) const {
  const auto source = [this](int at) {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), at,
                         [](int at, const Piece& piece) { return at < piece.begin; });
    if (after == pieces_.begin()) return at;
    return std::prev(after)->source + at - std::prev(after)->begin;
  };
  return {source(begin), source(end - 1) + 1};
}

int64_t JoinedText::MaxBytes(absl::string_view text) {
  const auto breaks = std::count(text.begin(), text.end(), '\n');
  // Both vectors may have grown by doubling, beside the lines and the compounds of one block.
  return 16 * static_cast<int64_t>(text.size()) +
         (breaks + 1) * static_cast<int64_t>(4 * sizeof(Piece) + 2 * sizeof(Line));
}

int64_t JoinedText::bytes() const {
  return static_cast<int64_t>(text_.capacity() + pieces_.capacity() * sizeof(Piece));
}

void JoinedText::Append(absl::string_view bytes, int source) {
  if (bytes.empty()) return;
  pieces_.push_back({static_cast<int>(text_.size()), source});
  text_.append(bytes.data(), bytes.size());
}

struct ParagraphJoiner::State {
  void ReadLine();
  void JoinLine();

  int Offset(const char* at) const { return static_cast<int>(at - text.data()); }

  const absl::string_view text;
  JoinedText joined = {};
  size_t begin = 0;    // of the block
  size_t end = 0;      // of what was read
  bool whole = false;  // the lines of the block and the blank line behind it were read
  std::vector<Line> block = {};
  std::set<absl::string_view> compounds = {};
  int width = 0;
  size_t next = 0;    // line to join
  int copied = 0;     // the text up to here is in the joined text
  bool first = true;  // the line begins a paragraph
};

void ParagraphJoiner::State::ReadLine() {
  const size_t line_end = std::min(text.find('\n', end), text.size());
  const absl::string_view raw = text.substr(end, line_end - end);
  const Line line = MeasureLine(raw);
  end = std::min(line_end + 1, text.size());
  whole = line.blank || end == text.size();
  if (!line.blank) {
    block.push_back(line);
    AddCompounds(raw, compounds);
  }
  if (whole) width = WrapWidth(block);
}

void ParagraphJoiner::State::JoinLine() {
  if (next + 1 >= block.size()) {
    joined.Append(text.substr(copied, end - copied), copied);
    copied = static_cast<int>(end);
    begin = end;
    whole = false;
    block.clear();
    compounds.clear();
    next = 0;
    first = true;
    return;
  }
  const Line& line = block[next];
  const Line& following = block[++next];
  const bool goes_on = ContinuesIn(line, first, following, width);
  first = !goes_on;
  if (!goes_on) return;
  const Joint joint = ChooseJoint(line.text, following.text, compounds);
  const int line_end = Offset(line.text.data()) + static_cast<int>(line.text.size());
  joined.Append(text.substr(copied, line_end - joint.removed - copied), copied);
  if (joint.blank) joined.Append(" ", line_end);
  copied = Offset(following.text.data());
}

ParagraphJoiner::ParagraphJoiner(absl::string_view text)
    : state_(std::make_unique<State>(State{.text = text})) {
  state_->joined.text_.reserve(text.size());
}

ParagraphJoiner::~ParagraphJoiner() = default;

bool ParagraphJoiner::done() const { return state_->begin == state_->text.size(); }

int64_t ParagraphJoiner::Step(int64_t work) {
  int64_t worked = 0;
  while (worked < work && !done()) {
    const size_t read = state_->end;
    state_->whole ? state_->JoinLine() : state_->ReadLine();
    worked += kWorkOfLine + static_cast<int64_t>(state_->end - read) / kBytesOfLinePerWork;
  }
  return worked;
}

JoinedText ParagraphJoiner::Take() { return std::move(state_->joined); }

JoinedText JoinParagraphs(absl::string_view text) {
  ParagraphJoiner joiner(text);
  while (!joiner.done()) joiner.Step(std::numeric_limits<int64_t>::max());
  return joiner.Take();
}

}  // namespace linnet::model
