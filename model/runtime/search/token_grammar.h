#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// The grammar of tokens that makes every target valid text: byte pieces form UTF-8 characters, and
// control pieces, which are not text, occur only where they are forced.
//
// A deterministic automaton over classes of tokens. Immutable, so thread-safe. Source: the Unicode
// Standard, table 3-7, well-formed UTF-8 byte sequences.
class TokenGrammar {
 public:
  enum Class : uint8_t {
    kText,          // whole characters
    kBlank,         // white space; the target still counts as empty after it
    kEnd,           // eos
    kControl,       // not text; only where it is forced
    kFirstControl,  // not text, but a target may begin with it, after a blank or not
    kByte80,        // bytes 80 to 8F
    kByte90,        // 90 to 9F
    kByteA0,        // A0 to BF
    kLead2,         // C2 to DF: one byte follows
    kLeadE0,
    kLead3,  // E1 to EC, EE, EF: two bytes follow
    kLeadED,
    kLeadF0,
    kLead4,  // F1 to F3: three bytes follow
    kLeadF4,
    kClasses,
  };
  // The class of a byte piece. Bytes that never occur in UTF-8 are control pieces.
  static Class OfByte(uint8_t byte);

  // State of a target. At a boundary, a character has ended.
  using State = uint8_t;
  static constexpr State kStart = 0, kBoundary = 1, kStates = 9;
  // Set in a forbidden transition; its state applies where the token is forced.
  static constexpr int32_t kForbidden = 1 << 8;
  static constexpr int kMaxTail = 3;

  // `classes`: by token.
  explicit TokenGrammar(std::vector<Class> classes);

  State Next(State state, TokenId token) const { return Transition(state, token) & 0xff; }
  // Number of byte pieces that must follow in that state before a character ends.
  static int Tail(State state);
  // The forbidden next tokens, ascending, if `left` tokens may follow the next one. Inside a
  // character `left` is ignored: it was sufficient when the character began.
  std::span<const TokenId> ForbiddenTokens(State state, int left) const;
  // True for a piece that occurs only where it is forced.
  bool IsControl(TokenId token) const {
    return classes_[token] == kControl || classes_[token] == kFirstControl;
  }

  // The byte pieces of longer characters, ascending.
  std::span<const TokenId> byte_pieces() const { return byte_pieces_; }

  // The automaton in the form of ops/search/beam_params.h: the class of each token, the transitions
  // [kStates, kClasses] with kForbidden, and the tail of each state.
  std::span<const Class> classes() const { return classes_; }
  static std::vector<int32_t> Transitions();
  static std::vector<int32_t> Tails();

 private:
  int32_t Transition(State state, TokenId token) const;

  std::vector<Class> classes_;
  std::vector<TokenId> byte_pieces_;
  // ForbiddenTokens: at a boundary by `left`, at most kMaxTail; inside a character by its state.
  std::array<std::array<std::vector<TokenId>, kMaxTail + 1>, 2> at_boundary_;
  std::array<std::vector<TokenId>, kStates> in_character_;
};

}  // namespace linnet::model
