#include "model/runtime/text/invisible.h"

namespace linnet::model {
namespace {

constexpr uint8_t kVirama = 9;  // canonical combining class

bool Joins(UChar32 c) {
  const int type = u_getIntPropertyValue(c, UCHAR_JOINING_TYPE);
  return type == U_JT_DUAL_JOINING || type == U_JT_RIGHT_JOINING || type == U_JT_LEFT_JOINING ||
         type == U_JT_JOIN_CAUSING;
}

bool IsEmojiPart(UChar32 c) {
  constexpr UChar32 kVariation = 0xFE0F;
  return u_hasBinaryProperty(c, UCHAR_EXTENDED_PICTOGRAPHIC) || c == kVariation ||
         u_hasBinaryProperty(c, UCHAR_EMOJI_MODIFIER);
}

}  // namespace

bool IsInvisible(UChar32 c) {
  return u_charType(c) == U_FORMAT_CHAR &&
         u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT);
}

bool IsNeededJoiner(absl::string_view text, const Character& joiner) {
  if (joiner.begin == 0) return false;
  const UChar32 before = CharacterBefore(text, joiner.begin).code_point;
  const bool tag = joiner.code_point >= 0xE0020 && joiner.code_point <= 0xE007F;
  if (tag) {  // of a flag
    return IsEmojiPart(before) || (before >= 0xE0020 && before <= 0xE007F);
  }
  if ((joiner.code_point != 0x200C && joiner.code_point != 0x200D) ||
      joiner.end == static_cast<int>(text.size()))
    return false;
  const UChar32 after = CharacterAt(text, joiner.end).code_point;
  if (joiner.code_point == 0x200D && IsEmojiPart(before)) return IsEmojiPart(after);
  UChar32 letter = before;  // behind marks that show on it
  for (int at = joiner.begin; at > 0 && u_charType(letter) == U_NON_SPACING_MARK &&
                              u_getCombiningClass(letter) != kVirama;) {
    const Character character = CharacterBefore(text, at);
    letter = character.code_point;
    at = character.begin;
  }
  return u_getCombiningClass(letter) == kVirama || u_getCombiningClass(after) == kVirama ||
         (Joins(letter) && Joins(after));
}

}  // namespace linnet::model
