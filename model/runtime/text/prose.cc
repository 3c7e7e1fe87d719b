#include "model/runtime/text/prose.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/white_space.h"

namespace linnet::model {
namespace {

constexpr size_t kLongestLineOfCode = 160;  // bytes; a paragraph may end like code

enum class WordKind { kMarks, kWord, kNumber, kOther };

bool IsLetter(UChar32 c) { return u_isalpha(c) || (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0; }

// Marks of sentences around a word. Brackets of code, and marks of links and paths, are none.
bool IsAroundWord(UChar32 c) {
  constexpr absl::string_view kOfCode = "#@/\\&{}";
  if (c < 0x80 && kOfCode.find(static_cast<char>(c)) != absl::string_view::npos) return false;
  return (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0 || c == 0xB0;  // "°"
}

// Marks within a word: "well-known", "don't", "and/or", and those between words without blanks.
bool IsInsideWord(UChar32 c) {
  constexpr absl::string_view kAscii = "-'/&.,:+";
  if (c < 0x80) return kAscii.find(static_cast<char>(c)) != absl::string_view::npos;
  return (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}

absl::string_view WithoutMarks(absl::string_view word) {
  while (!word.empty() && IsAroundWord(CharacterAt(word, 0).code_point))
    word.remove_prefix(CharacterAt(word, 0).end);
  while (!word.empty()) {
    const Character last = CharacterBefore(word, static_cast<int>(word.size()));
    if (!IsAroundWord(last.code_point)) break;
    word = word.substr(0, last.begin);
  }
  return word;
}

// Classifies what stands between white space. `word`, without its marks, is not empty.
WordKind KindOf(absl::string_view word) {
  bool any_letter_part = false, previous_lower = false, begins_lower = false, has_sign = false;
  int digits = 0, letters = 0;  // of the part since the last mark
  int slashes = 0;
  UChar32 before = 0, mark = 0;
  int letters_before_mark = 0;
  const auto part_is_fine = [&] { return digits == 0 || letters <= 3; };  // "3rd", "10km"
  for (int at = 0; at < static_cast<int>(word.size());) {
    const Character character = CharacterAt(word, at);
    const UChar32 c = character.code_point;
    at = character.end;
    if (u_isdigit(c)) {
      if (letters > 0) return WordKind::kOther;  // "x1"
      ++digits;
    } else if (IsLetter(c)) {
      // camelCase, but neither "iPhone" nor "YouTube".
      if (letters == 0) begins_lower = u_islower(c);
      if (begins_lower && u_isupper(c) && previous_lower && letters > 2) return WordKind::kOther;
      ++letters;
      any_letter_part |= digits == 0;
      // "a.example", "file.txt": a name with a dot, but not "e.g".
      if (mark == '.' && letters == 2 && letters_before_mark > 0) return WordKind::kOther;
    } else if (IsInsideWord(c)) {
      if (!part_is_fine() || (c == ':' && before == ':')) return WordKind::kOther;
      slashes += c == '/' ? 1 : 0;
      letters_before_mark = letters;
      letters = digits = 0;
      mark = c;
    } else if (character.begin == 0 && (U_GET_GC_MASK(c) & U_GC_SC_MASK) != 0) {
      has_sign = true;  // "$5"
    } else {
      // "5%", "20°"
      const bool at_end = at == static_cast<int>(word.size());
      if (!at_end || digits == 0) return WordKind::kOther;
    }
    previous_lower = u_islower(c);
    before = c;
  }
  if (slashes > 1 || !part_is_fine() || (has_sign && any_letter_part)) return WordKind::kOther;
  return any_letter_part ? WordKind::kWord : WordKind::kNumber;
}

// A mark may end one occurrence and begin the next: " | | ".
int Count(absl::string_view line, absl::string_view what) {
  int count = 0;
  for (size_t at = line.find(what); at != absl::string_view::npos; at = line.find(what, at + 1))
    ++count;
  return count;
}

// A row of a table: "| a | b |", cells between tabs, or "a,b;c".
bool IsRow(absl::string_view line, size_t words) {
  if (line[0] == '|' || Count(line, " | ") >= 2 || Count(line, "\t") >= 2) return true;
  size_t joined = 0;
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    const bool separator = line[i] == ',' || line[i] == ';';
    joined += separator && line[i + 1] != ' ' && line[i + 1] != '\t' ? 1 : 0;
  }
  return joined >= 2 * std::max<size_t>(words - 1, 1);
}

bool IsCode(absl::string_view line) {
  if (line.size() > kLongestLineOfCode) return false;
  for (const absl::string_view end : {"{", "}", ");", "):"}) {
    if (absl::EndsWith(line, end)) return true;
  }
  return false;
}

}  // namespace

double ProseShare(absl::string_view text) {
  text = text.substr(0, kMaxProseBytes);
  size_t prose = 0, all = 0;
  bool fenced = false;
  for (absl::string_view line : PartsOf(text, '\n')) {
    line = Trimmed(line);
    const std::vector<absl::string_view> words = WordsOf(line);
    if (words.empty()) continue;
    for (const absl::string_view word : words) all += word.size();
    if (absl::StartsWith(line, "```") || absl::StartsWith(line, "~~~")) {
      fenced = !fenced;
      continue;
    }
    if (fenced || IsRow(line, words.size()) || IsCode(line)) continue;
    size_t in_words = 0, in_numbers = 0;
    for (const absl::string_view word : words) {
      const absl::string_view bare = WithoutMarks(word);
      const WordKind kind = bare.empty() ? WordKind::kMarks : KindOf(bare);
      if (kind == WordKind::kWord) in_words += word.size();
      if (kind == WordKind::kNumber) in_numbers += word.size();
    }
    prose += in_words + std::min(in_numbers, in_words);
  }
  return all == 0 ? 1 : static_cast<double>(prose) / static_cast<double>(all);
}

}  // namespace linnet::model
