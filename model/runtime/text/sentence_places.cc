#include "model/runtime/text/sentence_places.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "model/runtime/text/words_around.h"

namespace linnet::model {
namespace {

bool IsDoubleQuote(UChar32 c) {
  return c == '"' || c == 0xAB || c == 0xBB || (c >= 0x201C && c <= 0x201F);
}

bool IsFace(UChar32 c) {
  return (c >= 0x1F600 && c <= 0x1F64F) || (c >= 0x1F910 && c <= 0x1F92F) || c == 0x2764;
}

// Variation selectors, joiners and skin tones, which follow an emoji.
bool ModifiesEmoji(UChar32 c) {
  return c == 0xFE0F || c == 0x200D || (c >= 0x1F3FB && c <= 0x1F3FF);
}

// True for the last byte of a mark that may end a sentence, or of a smiley. Every byte of a line is
// asked, so the common ones come first.
bool MayBeMark(absl::string_view line, int at) {
  const auto byte = static_cast<unsigned char>(line[at]);
  if (byte < 0x80) {
    if (byte > '?') {
      if (byte != 'D' && byte != 'P') return false;
    } else if (byte == '.' || byte == '!' || byte == '?') {
      return true;
    } else if (byte != ')') {
      return false;
    }
    // ":)", ";-)", ":D"
    return at > 0 && (line[at - 1] == ':' || line[at - 1] == '-' || line[at - 1] == ';' ||
                      line[at - 1] == ')');
  }
  if (byte >= 0xC0 || at < 2) return false;
  // An emoji is F0 9F .. ..; the others have three bytes.
  if (at >= 3 && line[at - 3] == '\xF0') return line[at - 2] == '\x9F';
  if (byte == 0xA6) return line.substr(at - 2, 3) == "\u2026";
  if (byte == 0xA4) return line.substr(at - 2, 3) == "\u2764";
  return byte == 0x8F && line.substr(at - 2, 3) == "\uFE0F";
}

}  // namespace

int NextPlace(absl::string_view line, int from, int limit) {
  for (int at = from; at < limit; ++at) {
    if (!MayBeMark(line, at)) continue;
    int end = at + 1;
    while (end < limit && IsClosing(CharacterAt(line, end).code_point)) {
      end = CharacterAt(line, end).end;
    }
    if (end >= limit) return limit;
    if (!IsWhiteSpace(CharacterAt(line, end).code_point)) {
      at = end - 1;
      continue;
    }
    const int place = SkipWhiteSpace(line, end);
    return place < limit ? place : limit;
  }
  return limit;
}

bool IsSmiley(absl::string_view text, int end) {
  int at = end;
  while (at > 0 && end - at < 16 && ModifiesEmoji(CharacterBefore(text, at).code_point)) {
    at = CharacterBefore(text, at).begin;
  }
  if (at == 0) return false;
  const UChar32 last = CharacterBefore(text, at).code_point;
  if (IsFace(last)) return true;
  if (last != ')' && last != 'D' && last != 'P') return false;
  while (at > 0 && end - at < 8 && text[at - 1] == static_cast<char>(last)) --at;
  if (at > 0 && text[at - 1] == '-') --at;
  return at > 1 && (text[at - 1] == ':' || text[at - 1] == ';') &&
         !absl::ascii_isalnum(text[at - 2]);
}

bool IsQuoteAfterDash(absl::string_view text) {
  int at = 0;
  while (at < std::ssize(text) && at < 8 && IsDash(CharacterAt(text, at).code_point)) {
    at = CharacterAt(text, at).end;
  }
  if (at < std::ssize(text) && text[at] == ' ') ++at;
  return at < std::ssize(text) && IsDoubleQuote(CharacterAt(text, at).code_point);
}

QuotesBefore QuoteCounter::At(int begin, int end) {
  if (begin != begin_) {
    begin_ = begin;
    end_ = begin;
    quotes_.odd_in_sentence = false;
    quotes_.open_brackets = 0;
  }
  for (; end_ < end; ++end_) {
    const auto byte = static_cast<unsigned char>(line_[end_]);
    if (byte == '"') quotes_.odd_in_sentence ^= true;
    if (byte == '(' || byte == '[') ++quotes_.open_brackets;
    if (byte == ')' || byte == ']') --quotes_.open_brackets;
    if (byte != 0xC2 && byte != 0xE2) continue;
    const UChar32 c = CharacterAt(line_, end_).code_point;
    quotes_.odd_in_sentence ^= IsDoubleQuote(c);
    quotes_.low_mark |= c == 0x201E;
    quotes_.opening_mark |= c == 0x201C || c == 0x201E;
  }
  return quotes_;
}

int BeforeOpening(absl::string_view line, int begin, int end) {
  int before = end;
  while (before > begin) {
    const Character character = CharacterBefore(line, before);
    const int8_t type = u_charType(character.code_point);
    if (type != U_START_PUNCTUATION && type != U_INITIAL_PUNCTUATION) break;
    before = character.begin;
  }
  // Behind a Latin mark the same character may close: „Hallo.“
  const bool latin = before > begin && static_cast<unsigned char>(line[before - 1]) < 0x80;
  return latin || before == begin ? end : before;
}

int BehindClosing(absl::string_view line, int end, QuotesBefore quotes) {
  const auto size = static_cast<int>(line.size());
  const int mark = SkipWhiteSpaceBefore(line, end);
  const bool closed = mark > 0 && IsDoubleQuote(CharacterBefore(line, mark).code_point);
  while (end < size) {
    const Character character = CharacterAt(line, end);
    int after = character.end;
    if (IsDoubleQuote(character.code_point)) {
      const UChar32 c = character.code_point;
      const bool closes = c == 0xBB || (c == 0x201D && quotes.opening_mark) ||
                          (c == 0x201C && quotes.low_mark) || (c != 0xAB && quotes.odd_in_sentence);
      if (closed || !closes) return end;
      quotes.odd_in_sentence = false;
    } else if (absl::StartsWith(line.substr(end), "''")) {
      after = end + 2;
    } else if (line[end] == '[') {
      while (after < size && after - end <= 4 && absl::ascii_isdigit(line[after])) ++after;
      if (after == character.end || after == size || line[after] != ']') return end;
      ++after;
      // "[7] says so" begins a sentence.
      const int word = SkipWhiteSpace(line, after);
      if (word < size && u_islower(CharacterAt(line, word).code_point)) return end;
    } else if (u_charType(character.code_point) != U_END_PUNCTUATION ||
               quotes.open_brackets-- <= 0) {
      return end;
    }
    const int next = SkipWhiteSpace(line, after);
    const absl::string_view rest = line.substr(next);
    const bool comma = absl::StartsWith(rest, ",") && !absl::StartsWith(rest, ",,");
    if (comma || (absl::StartsWith(rest, ".") && !absl::StartsWith(rest, ".."))) return -1;
    if (after < size && !IsWhiteSpace(CharacterAt(line, after).code_point)) return end;
    end = SkipWhiteSpace(line, after);
  }
  return end;
}

}  // namespace linnet::model
