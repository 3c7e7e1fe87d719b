#include "model/runtime/tokenizer/terms.h"

#include <algorithm>

#include "model/runtime/text/characters.h"

namespace linnet::model {

bool EndsInWord(absl::string_view text) {
  return !text.empty() &&
         SameWord(CharacterBefore(text, static_cast<int>(text.size())).code_point, 'a');
}

TermFinder::TermFinder(const std::vector<std::string>& terms, bool ignore_case)
    : ignore_case_(ignore_case) {
  for (const std::string& term : terms) {
    std::vector<int32_t>& folded = terms_.emplace_back();
    for (int at = 0; at < std::ssize(term);) {
      const Character character = CharacterAt(term, at);
      folded.push_back(Fold(character.code_point));
      at = character.end;
    }
    by_first_[folded.front()].push_back(static_cast<int>(terms_.size()) - 1);
  }
  for (auto& [first, numbers] : by_first_) {
    std::stable_sort(numbers.begin(), numbers.end(),
                     [this](int a, int b) { return terms_[a].size() > terms_[b].size(); });
  }
}

int32_t TermFinder::Fold(int32_t character) const {
  return ignore_case_ ? u_foldCase(character, U_FOLD_CASE_DEFAULT) : character;
}

int TermFinder::EndAt(const std::vector<int32_t>& term, absl::string_view text, int at) const {
  for (int32_t wanted : term) {
    if (at == std::ssize(text)) return -1;
    const Character character = CharacterAt(text, at);
    if (Fold(character.code_point) != wanted) return -1;
    at = character.end;
  }
  const bool inside =
      at < std::ssize(text) && SameWord(term.back(), CharacterAt(text, at).code_point);
  return inside ? -1 : at;
}

std::vector<TermPlace> TermFinder::Find(absl::string_view text) const {
  std::vector<TermPlace> places;
  UChar32 before = ' ';  // the character before `at`
  for (int at = 0; at < std::ssize(text);) {
    const Character character = CharacterAt(text, at);
    const bool inside = SameWord(before, character.code_point);
    int end = -1;
    if (const auto found = by_first_.find(Fold(character.code_point));
        !inside && found != by_first_.end()) {
      for (int term : found->second) {
        end = EndAt(terms_[term], text, at);
        if (end < 0) continue;
        places.push_back({.term = term, .begin = at, .end = end});
        break;
      }
    }
    at = end < 0 ? character.end : end;
    before = CharacterBefore(text, at).code_point;
  }
  return places;
}

}  // namespace linnet::model
