#pragma once

#include "absl/strings/string_view.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {

// True for format characters that show nothing: soft hyphens, zero-width spaces and joiners, marks
// of direction, the byte order mark. A model that has not learnt them reads rail\u00ADway as two
// unknown words, so text is read without them. Source: Unicode, Default_Ignorable_Code_Point.
bool IsInvisible(UChar32 c);

// True for a joiner (U+200C, U+200D) or a tag that spelling needs: between letters of a script that
// joins them (Persian), beside a virama (Hindi), and in an emoji. Source: UAX #31, section 2.3.
bool IsNeededJoiner(absl::string_view text, const Character& joiner);

}  // namespace linnet::model
