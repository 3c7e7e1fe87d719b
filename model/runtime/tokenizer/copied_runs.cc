#include "model/runtime/tokenizer/copied_runs.h"

#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

// The end of the word, letter of an unspaced script, blank or symbol at `begin`.
int UnitEnd(absl::string_view text, int begin) {
  Character character = CharacterAt(text, begin);
  while (character.end < std::ssize(text)) {
    const Character next = CharacterAt(text, character.end);
    if (!SameWord(character.code_point, next.code_point)) break;
    character = next;
  }
  return character.end;
}

}  // namespace

std::vector<TextRun> FindUnspellable(absl::string_view text, const Names& names,
                                     absl::FunctionRef<Spelling(absl::string_view)> spelling) {
  std::vector<TextRun> runs;
  bool adjoins = false;  // only blanks since the last run
  for (int begin = 0, end = 0; begin < std::ssize(text); begin = end) {
    const int name = names.StartOf(text.substr(begin));
    end = name >= 0 ? begin + static_cast<int>(names[name].size()) : UnitEnd(text, begin);
    const bool blank = IsWhiteSpace(CharacterAt(text, begin).code_point);
    const Spelling spelled = name >= 0 ? Spelling::kUnspellable
                             : blank   ? Spelling::kNothing
                                       : spelling(text.substr(begin, end - begin));
    if (spelled == Spelling::kSpelled) {
      adjoins = false;
    } else if (spelled == Spelling::kUnspellable) {
      if (adjoins) {
        runs.back().end = end;
      } else {
        runs.push_back({begin, end});
      }
      adjoins = true;
    } else if (!blank && adjoins && runs.back().end == begin) {
      runs.back().end = end;  // a variation selector has no meaning by itself
    }
  }
  return runs;
}

}  // namespace linnet::model
