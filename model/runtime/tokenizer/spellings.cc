#include "model/runtime/tokenizer/spellings.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "model/runtime/search/token_grammar.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {

Spelling Spellings::Of(absl::string_view text) const {
  const Character first = text.empty() ? Character() : CharacterAt(text, 0);
  if (first.end != std::ssize(text) || first.code_point < 0 ||
      std::cmp_greater_equal(first.code_point, known_.size()))
    return HasUnspellableCharacter(text) ? Spelling::kUnspellable : Find(text);
  std::atomic<uint8_t>& known = known_[first.code_point];
  uint8_t spelling = known.load(std::memory_order_relaxed);
  if (spelling == 0) {
    spelling = static_cast<uint8_t>(Find(text)) + 1;
    known.store(spelling, std::memory_order_relaxed);
  }
  return static_cast<Spelling>(spelling - 1);
}

bool Spellings::HasUnspellableCharacter(absl::string_view text) const {
  std::call_once(made_characters_, [this] {
    std::vector<bool> found(known_.size());
    for (TokenId token = 0; token < subwords_.pieces(); ++token) {
      const absl::string_view piece = subwords_.Piece(token);
      for (int at = 0; at < std::ssize(piece);) {
        const Character character = CharacterAt(piece, at);
        at = character.end;
        if (character.code_point >= 0 && std::cmp_less(character.code_point, found.size()))
          found[character.code_point] = true;
      }
    }
    characters_ = std::move(found);
  });
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* const composed = unorm2_getNFKCInstance(&error);
  if (U_FAILURE(error)) return false;  // its tokens say it as well
  for (int at = 0; at < std::ssize(text);) {
    const Character character = CharacterAt(text, at);
    const UChar32 c = character.code_point;
    const absl::string_view part = text.substr(at, character.end - at);
    at = character.end;
    if (c < 0x80 || std::cmp_greater_equal(c, characters_.size()) || characters_[c]) continue;
    // Together with its neighbours it may become another character.
    const UChar32 next = at < std::ssize(text) ? CharacterAt(text, at).code_point : ' ';
    if (!unorm2_hasBoundaryBefore(composed, c) || !unorm2_hasBoundaryBefore(composed, next))
      continue;
    if (Of(part) == Spelling::kUnspellable) return true;
  }
  return false;
}

Spelling Spellings::Find(absl::string_view text) const {
  const absl::StatusOr<std::vector<TokenId>> tokens = subwords_.Encode(text);
  bool nothing = true;
  for (TokenId token : tokens.value_or(std::vector<TokenId>{})) {
    const TokenGrammar::Class kind = subwords_.ClassOf(token);
    if (kind == TokenGrammar::kControl || kind >= TokenGrammar::kByte80)
      return Spelling::kUnspellable;
    nothing = nothing && kind == TokenGrammar::kBlank;
  }
  if (nothing) return Spelling::kNothing;
  constexpr uint32_t kSymbols = U_GC_SO_MASK | U_GC_NO_MASK | U_GC_SM_MASK | U_GC_SC_MASK;
  const Character first = CharacterAt(text, 0);
  const bool symbol = first.end == std::ssize(text) && first.code_point >= 0x80 &&
                      (U_GET_GC_MASK(first.code_point) & kSymbols) != 0;
  return symbol && absl::StripAsciiWhitespace(subwords_.Decode(*tokens)) != text
             ? Spelling::kUnspellable
             : Spelling::kSpelled;
}

}  // namespace linnet::model
