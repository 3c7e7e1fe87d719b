#include "model/runtime/tokenizer/terms.h"

#include <limits>

#include "model/runtime/text/characters.h"

namespace linnet::model {

bool EndsInWord(absl::string_view text) {
  return !text.empty() &&
         SameWord(CharacterBefore(text, static_cast<int>(text.size())).code_point, 'a');
}

TermFinder::TermFinder(const std::vector<std::string>& terms, bool ignore_case)
    : ignore_case_(ignore_case) {
  for (int term = 0; term < std::ssize(terms); ++term) {
    int node = 0;
    for (int at = 0; at < std::ssize(terms[term]);) {
      const Character character = CharacterAt(terms[term], at);
      const int fresh = static_cast<int>(term_at_.size());
      const auto [child, added] = children_.try_emplace({node, Fold(character.code_point)}, fresh);
      if (added) term_at_.push_back(-1);
      node = child->second;
      at = character.end;
    }
    if (term_at_[node] < 0) term_at_[node] = term;  // of equal ones the first
  }
}

std::string FoldCase(absl::string_view text) {
  std::string folded;
  for (int at = 0; at < std::ssize(text);) {
    const Character character = CharacterAt(text, at);
    uint8_t bytes[U8_MAX_LENGTH];
    int size = 0;
    U8_APPEND_UNSAFE(bytes, size, u_foldCase(character.code_point, U_FOLD_CASE_DEFAULT));
    folded.append(bytes, bytes + size);
    at = character.end;
  }
  return folded;
}

int32_t TermFinder::Fold(int32_t character) const {
  return ignore_case_ ? u_foldCase(character, U_FOLD_CASE_DEFAULT) : character;
}

std::optional<TermPlace> TermFinder::LongestAt(absl::string_view text, int begin,
                                               int64_t& work) const {
  std::optional<TermPlace> longest;
  int node = 0;
  for (int at = begin; at < std::ssize(text); --work) {
    const Character character = CharacterAt(text, at);
    const int32_t folded = Fold(character.code_point);
    const auto child = children_.find({node, folded});
    if (child == children_.end()) break;
    node = child->second;
    at = character.end;
    if (term_at_[node] < 0) continue;
    if (at < std::ssize(text) && SameWord(folded, CharacterAt(text, at).code_point)) continue;
    longest = TermPlace{.term = term_at_[node], .begin = begin, .end = at};
  }
  return longest;
}

int TermFinder::FindPart(absl::string_view text, int begin, int64_t& work,
                         std::vector<TermPlace>& places) const {
  int at = begin;
  // The character before `at`.
  UChar32 before = at > 0 ? CharacterBefore(text, at).code_point : ' ';
  for (; at < std::ssize(text) && work > 0; --work) {
    const Character character = CharacterAt(text, at);
    const bool inside = SameWord(before, character.code_point);
    const std::optional<TermPlace> place = inside ? std::nullopt : LongestAt(text, at, work);
    if (place.has_value()) places.push_back(*place);
    at = place.has_value() ? place->end : character.end;
    before = CharacterBefore(text, at).code_point;
  }
  return at;
}

std::vector<TermPlace> TermFinder::Find(absl::string_view text) const {
  std::vector<TermPlace> places;
  int64_t work = std::numeric_limits<int64_t>::max();
  FindPart(text, 0, work, places);
  return places;
}

}  // namespace linnet::model
