#include "model/runtime/text/letters.h"

#include "model/runtime/text/characters.h"

namespace linnet::model {

bool HasLetter(absl::string_view text) {
  for (int at = 0; at < std::ssize(text);) {
    const Character character = CharacterAt(text, at);
    if (character.code_point >= 0 && u_isalpha(character.code_point)) return true;
    at = character.end;
  }
  return false;
}

}  // namespace linnet::model
