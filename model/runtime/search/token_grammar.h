#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// Which token may follow which, so that a target is text: the bytes of byte pieces form characters
// of UTF-8, and pieces that steer a model and are no text stand nowhere unless they are forced.
//
// A deterministic automaton over classes of tokens. Thread-safe: nothing changes after it is made.
// Source: the Unicode Standard, table 3-7, well-formed UTF-8 byte sequences.
class TokenGrammar {
 public:
  enum Class : uint8_t {
    kText,          // whole characters
    kBlank,         // white space, which is no beginning
    kEnd,           // eos
    kControl,       // no text: it stands where it is forced
    kFirstControl,  // no text, but a target may begin with it, behind a blank or not
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
  // Of a byte piece. Bytes that stand in no UTF-8 are control pieces.
  static Class OfByte(uint8_t byte);

  // Where a target stands. At a border, a character has ended.
  using State = uint8_t;
  static constexpr State kStart = 0, kBoundary = 1, kStates = 9;
  // Set in a transition that is not allowed; the state behind it holds where it is forced.
  static constexpr int32_t kBarred = 1 << 8;
  static constexpr int kMaxTail = 3;

  // `classes`: of each token.
  explicit TokenGrammar(std::vector<Class> classes);

  State Next(State state, TokenId token) const { return Transition(state, token) & 0xff; }
  // Byte pieces that must follow in that state before a character ends.
  static int Tail(State state);
  // The tokens, ascending, that may not come next where `left` more may follow them. In the middle
  // of a character `left` does not count: there was enough when it began.
  std::span<const TokenId> Barred(State state, int left) const;
  // A piece that stands only where it is forced?
  bool IsControl(TokenId token) const {
    return classes_[token] == kControl || classes_[token] == kFirstControl;
  }

  // The byte pieces of longer characters, ascending.
  std::span<const TokenId> byte_pieces() const { return byte_pieces_; }

  // The automaton as a device takes it (ops/beam_params.h): the class of each token, the
  // transitions [kStates, kClasses] with kBarred in them, and the tail of each state.
  std::span<const Class> classes() const { return classes_; }
  static std::vector<int32_t> Transitions();
  static std::vector<int32_t> Tails();

 private:
  int32_t Transition(State state, TokenId token) const;

  std::vector<Class> classes_;
  std::vector<TokenId> byte_pieces_;
  // At a border by `left`, of which more than kMaxTail is as much; in a character by its state.
  std::array<std::array<std::vector<TokenId>, kMaxTail + 1>, 2> at_boundary_;
  std::array<std::vector<TokenId>, kStates> in_character_;
};

}  // namespace linnet::model
