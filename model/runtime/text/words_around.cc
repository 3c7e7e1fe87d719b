#include "model/runtime/text/words_around.h"

#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace linnet::model {
namespace {

constexpr int kLongestPart = 4;       // letters of a part of "dr.phil."
constexpr int kLongestVowelless = 4;  // letters

bool IsLetterOfAlphabet(UChar32 c) {
  if (!u_isalpha(c) || IsUnspacedScript(c)) return false;
  UErrorCode error = U_ZERO_ERROR;
  return uscript_getScript(c, &error) != USCRIPT_HANGUL;
}

// The letter without accents, in lower case: "ó" and "O" become "o".
UChar32 BaseLetter(UChar32 c) {
  if (c < 0x80) return u_tolower(c);
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(error);
  icu::UnicodeString parts;
  if (U_SUCCESS(error) && nfd->getDecomposition(c, parts)) c = parts.char32At(0);
  return u_tolower(c);
}

}  // namespace

bool IsVowel(UChar32 c) {
  static constexpr char16_t kVowels[] = u"aeiouyæœøıαεηιουωаеиоуыэюяіїєъ";
  const UChar32 base = BaseLetter(c);
  return std::any_of(std::begin(kVowels), std::end(kVowels),
                     [base](char16_t vowel) { return vowel != 0 && vowel == base; });
}

bool HasVowels(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(c, &error);
  return script == USCRIPT_LATIN || script == USCRIPT_CYRILLIC || script == USCRIPT_GREEK;
}

bool IsDash(UChar32 c) { return c == '-' || (c >= 0x2010 && c <= 0x2015); }

bool IsOpening(UChar32 c) {
  const int8_t type = u_charType(c);
  return type == U_START_PUNCTUATION || type == U_INITIAL_PUNCTUATION ||
         type == U_FINAL_PUNCTUATION || c == '"' || c == '\'';
}

absl::string_view WordBefore(absl::string_view text, int end, int& begin) {
  end = SkipWhiteSpaceBefore(text, end);
  begin = end;
  while (begin > 0) {
    const Character character = CharacterBefore(text, begin);
    if (IsWhiteSpace(character.code_point)) break;
    begin = character.begin;
    if (end - begin > kLongestWordAround) return {};
  }
  int first = begin;
  while (first < end && IsOpening(CharacterAt(text, first).code_point)) {
    first = CharacterAt(text, first).end;
  }
  while (end > first && IsClosing(CharacterBefore(text, end).code_point)) {
    end = CharacterBefore(text, end).begin;
  }
  return text.substr(first, end - first);
}

absl::string_view FirstWord(absl::string_view text) {
  text = text.substr(0, 2 * kLongestWordAround);
  int begin = 0;
  while (begin < std::ssize(text)) {
    const Character character = CharacterAt(text, begin);
    const UChar32 c = character.code_point;
    // ",," is a quote that opens.
    if (!IsOpening(c) && !IsDash(c) && !IsWhiteSpace(c) && c != ',') break;
    begin = character.end;
  }
  int end = begin;
  while (end < std::ssize(text) && InWord(CharacterAt(text, end).code_point)) {
    end = CharacterAt(text, end).end;
  }
  return text.substr(begin, end - begin);
}

bool IsInitials(absl::string_view word) {
  int at = 0;
  while (at < std::ssize(word) && IsLetterOfAlphabet(CharacterAt(word, at).code_point)) {
    at = CharacterAt(word, at).end;
    while (at < std::ssize(word) &&
           (U_GET_GC_MASK(CharacterAt(word, at).code_point) & U_GC_M_MASK) != 0) {
      at = CharacterAt(word, at).end;
    }
    if (at == std::ssize(word) || word[at++] != '.') return false;
  }
  return !word.empty() && at == std::ssize(word);
}

bool HasInnerStops(absl::string_view word) {
  int parts = 0;
  int letters = 0;
  bool short_part = false;
  for (int at = 0; at < std::ssize(word);) {
    const Character character = CharacterAt(word, at);
    at = character.end;
    if (character.code_point == '.') {
      if (letters == 0 || letters > kLongestPart) return false;
      short_part |= letters <= 2;
      letters = 0;
      ++parts;
    } else if (IsLetterOfAlphabet(character.code_point)) {
      ++letters;
    } else {
      return false;
    }
  }
  return parts >= 2 && letters == 0 && short_part;
}

bool IsNumbering(absl::string_view word, int longest) {
  int digits = 0;
  for (char c : word) {
    if (absl::ascii_isdigit(c)) {
      if (++digits > longest) return false;
    } else if (c == '.' && digits > 0) {
      digits = 0;
    } else {
      return false;
    }
  }
  return !word.empty() && word.back() == '.';
}

bool IsRomanNumber(absl::string_view word) {
  return word.size() > 2 && word.back() == '.' &&
         word.substr(0, word.size() - 1).find_first_not_of("IVXLC") == absl::string_view::npos;
}

bool IsSmallRomanNumber(absl::string_view word) {
  return word.size() > 1 && word.size() <= 6 && word.back() == '.' &&
         word.substr(0, word.size() - 1).find_first_not_of("ivx") == absl::string_view::npos;
}

bool IsVowelless(absl::string_view word) {
  static constexpr std::array<absl::string_view, 16> kUnits = {
      "km.", "cm.", "mm.",  "kg.", "mg.",  "ml.", "cl.", "dl.",
      "tv.", "cd.", "dvd.", "pc.", "sms.", "hl.", "kw.", "hz."};
  const int letters = LettersBeforeStop(word);
  if (letters < 2 || letters > kLongestVowelless) return false;
  if (std::find(kUnits.begin(), kUnits.end(), absl::AsciiStrToLower(word)) != kUnits.end())
    return false;
  for (int at = 0; at + 1 < std::ssize(word);) {
    const Character character = CharacterAt(word, at);
    if (!HasVowels(character.code_point) || IsVowel(character.code_point)) return false;
    if (at > 0 && u_isupper(character.code_point)) return false;
    at = character.end;
  }
  return true;
}

int LettersBeforeStop(absl::string_view word) {
  if (word.empty() || word.back() != '.') return 0;
  int letters = 0;
  for (int at = 0; at + 1 < std::ssize(word); ++letters) {
    const Character character = CharacterAt(word, at);
    if (!InWord(character.code_point) || u_isdigit(character.code_point)) return 0;
    at = character.end;
  }
  return letters;
}

bool IsAllCapitals(absl::string_view word) {
  int letters = 0;
  for (int at = 0; at < std::ssize(word); ++letters) {
    const Character character = CharacterAt(word, at);
    if (!u_isupper(character.code_point)) return false;
    at = character.end;
  }
  return letters >= 2;
}

}  // namespace linnet::model
