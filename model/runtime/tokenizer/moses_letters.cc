#include "model/runtime/tokenizer/moses_letters.h"

#include <unicode/uscript.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

// True if c was assigned in this major version of Unicode or earlier.
bool IsAsOldAs(UChar32 c, int version) {
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] > 0 && age[0] <= version;
}

// Viramas and nuktas: marks within the words of Indic scripts, which Unicode does not call
// alphabetic. The list is that of sacremoses.
constexpr UChar32 kIndicMarks[] = {
    0x093C,  0x094D,  0x09BC,  0x09CD,  0x0A3C,  0x0A4D,  0x0ABC,  0x0ACD,  0x0AFD,
    0x0AFE,  0x0AFF,  0x0B3C,  0x0B4D,  0x0BCD,  0x0C4D,  0x0CBC,  0x0CCD,  0x0D3B,
    0x0D3C,  0x0D4D,  0x0DCA,  0x0EBA,  0x1039,  0x1714,  0x1BAB,  0x1C37,  0xA8C4,
    0xA8F3,  0xA8F4,  0xA953,  0xAAF6,  0x10A3F, 0x11046, 0x110B9, 0x110BA, 0x11133,
    0x11173, 0x111C0, 0x111CA, 0x11235, 0x11236, 0x112E9, 0x112EA, 0x1133C, 0x1134D,
    0x11442, 0x11446, 0x114C2, 0x114C3, 0x115BF, 0x115C0, 0x1163F, 0x116B6, 0x116B7,
    0x11839, 0x1183A, 0x119E0, 0x11A34, 0x11C3F, 0x11D42, 0x11D45, 0x11D97, 0x1E94A};

bool IsHangulSyllable(UChar32 c) { return c >= 0xAC00 && c <= 0xD7A3; }

bool IsHan(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  return uscript_getScript(c, &error) == USCRIPT_HAN;
}

// True for scripts that count as letters in this language only.
bool IsOwnScript(UChar32 c, absl::string_view language) {
  if (language == "ko") return uscript_hasScript(c, USCRIPT_HANGUL);
  if (language == "zh") return uscript_hasScript(c, USCRIPT_HAN) && IsAsOldAs(c, 8);
  if (language == "ja") {
    return (uscript_hasScript(c, USCRIPT_HAN) && IsAsOldAs(c, 8)) ||
           uscript_hasScript(c, USCRIPT_HIRAGANA) || uscript_hasScript(c, USCRIPT_KATAKANA);
  }
  return false;
}

// White space, and the separators of ASCII.
bool IsSpace(UChar32 c) { return IsWhiteSpace(c) || (c >= 0x1C && c <= 0x1F); }

uint8_t CommonClasses(UChar32 c) {
  uint8_t classes = 0;
  if (IsSpace(c)) classes |= kSpaceClass;
  if (u_isULowercase(c) && IsAsOldAs(c, 9) && !(c >= 0x10D0 && c <= 0x10FF)) classes |= kLowerClass;
  if (c < 0x10000 && IsAsOldAs(c, 7) && !IsHan(c) && !IsHangulSyllable(c)) {
    if (u_isUAlphabetic(c)) classes |= kAlphaClass | kAlnumClass;
    if (u_charType(c) == U_DECIMAL_DIGIT_NUMBER) classes |= kAlnumClass;
    if ((U_GET_GC_MASK(c) & U_GC_N_MASK) != 0) classes |= kNumberClass;
  }
  if (std::binary_search(std::begin(kIndicMarks), std::end(kIndicMarks), c)) {
    classes |= kWordMarkClass | kAlnumClass;
  }
  return classes;
}

}  // namespace

Letter ClassifyLetter(UChar32 c, absl::string_view language) {
  static const std::array<uint8_t, 0x250> kLatin = [] {
    std::array<uint8_t, 0x250> classes;
    for (UChar32 code = 0; code < std::ssize(classes); ++code) classes[code] = CommonClasses(code);
    return classes;
  }();
  if (c < std::ssize(kLatin)) return {.code = c, .classes = kLatin[c]};
  uint8_t classes = CommonClasses(c);
  if (IsOwnScript(c, language)) classes |= kWordMarkClass | kAlnumClass;
  return {.code = c, .classes = classes};
}

Letters DecodeLetters(absl::string_view text, absl::string_view language) {
  Letters letters;
  letters.reserve(text.size());
  for (int at = 0; at < std::ssize(text);) {
    const Character character = CharacterAt(text, at);
    letters.push_back(
        ClassifyLetter(character.code_point < 0 ? 0xFFFD : character.code_point, language));
    at = character.end;
  }
  return letters;
}

bool IsCjk(UChar32 c) {
  // Hangul Jamo; CJK radicals to Yi; Phags-pa; Hangul syllables; compatibility ideographs and
  // forms; half-width forms; Tangut; Kana supplement; Nushu; the supplementary ideographic plane.
  constexpr struct {
    UChar32 first, last;
  } kRanges[] = {{0x1100, 0x11FF},   {0x2E80, 0xA4CF},   {0xA840, 0xA87F},  {0xAC00, 0xD7AF},
                 {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},   {0xFF65, 0xFFDC},  {0x17000, 0x18AFF},
                 {0x1B000, 0x1B12F}, {0x1B170, 0x1B2FF}, {0x20000, 0x2FFFF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.last; });
}

}  // namespace linnet::model
