#include "model/runtime/tokenizer/capitals.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "absl/strings/strip.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

icu::UnicodeString Wide(absl::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
}

constexpr int kMaxCharactersAround = 256;
constexpr int kMinCapitalsAround = 4;  // of two words: "I AM" alone decides nothing

// True if the first two words of the text, or its last two if `backwards`, are in capitals and on
// one line. Words without letters are left out. Looks at a bounded part of the text.
bool CapitalsBeside(absl::string_view text, bool backwards) {
  int words = 0;
  int capitals = 0;
  bool counted = false;  // the current word
  int at = backwards ? static_cast<int>(text.size()) : 0;
  const int end = backwards ? 0 : static_cast<int>(text.size());
  for (int steps = 0; at != end && steps < kMaxCharactersAround; ++steps) {
    const Character character = backwards ? CharacterBefore(text, at) : CharacterAt(text, at);
    const UChar32 c = character.code_point;
    at = backwards ? character.begin : character.end;
    if (u_isULowercase(c) || u_istitle(c)) return false;
    if (IsWhiteSpace(c)) {
      if (words == 2) break;
      if (words == 1 && IsBreak(c)) return false;
      counted = false;
    } else if (u_isUUppercase(c)) {
      words += static_cast<int>(!counted);
      counted = true;
      ++capitals;
    }
  }
  return words == 2 && capitals >= kMinCapitalsAround;
}

bool InCapitals(const icu::UnicodeString& text, const TextAround& around) {
  int words = 0;
  int capitals = 0;
  bool counted = false;  // the current word
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (u_isULowercase(c) || u_istitle(c)) return false;
    if (u_isUWhiteSpace(c)) {
      counted = false;
    } else if (u_isUUppercase(c)) {
      words += static_cast<int>(!counted);
      counted = true;
      ++capitals;
    }
  }
  if (words != 1 || capitals < 2) return words >= 2;
  return CapitalsBeside(around.before, true) || CapitalsBeside(around.after, false);
}

bool IsLetterOrNumber(UChar32 c) { return (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_N_MASK)) != 0; }

// Converts to lower case, except the first letter of a text that does not begin with a number.
icu::UnicodeString WithoutCapitals(icu::UnicodeString text) {
  text.toLower(icu::Locale::getRoot());
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (!IsLetterOrNumber(c)) continue;
    return text.replace(i, U16_LENGTH(c), icu::UnicodeString(u_totitle(c)));
  }
  return text;
}

}  // namespace

bool IsInCapitals(absl::string_view text, const TextAround& around) {
  return InCapitals(Wide(text), around);
}

std::string MarkCapitals(absl::string_view text, absl::string_view mark, const TextAround& around) {
  const icu::UnicodeString wide = Wide(text);
  if (mark.empty() || !InCapitals(wide, around)) return std::string(text);
  std::string marked = std::string(mark) + " ";
  return WithoutCapitals(wide).toUTF8String(marked);
}

std::string RestoreCapitals(absl::string_view text, absl::string_view mark) {
  if (mark.empty() || !absl::ConsumePrefix(&text, mark)) return std::string(text);
  absl::ConsumePrefix(&text, " ");
  std::string restored;
  return Wide(text).toUpper(icu::Locale::getRoot()).toUTF8String(restored);
}

}  // namespace linnet::model
