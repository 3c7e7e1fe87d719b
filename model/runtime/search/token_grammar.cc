#include "model/runtime/search/token_grammar.h"

#include <algorithm>
#include <utility>

namespace linnet::model {
namespace {

using Grammar = TokenGrammar;

// States inside a character: the number of bytes that follow, and the allowed next ones.
enum : TokenGrammar::State { kOne = 2, kTwo, kThree, kAfterE0, kAfterED, kAfterF0, kAfterF4 };

// The state after a token of the class, with kForbidden where it is forbidden.
int32_t Step(TokenGrammar::State state, TokenGrammar::Class token) {
  const bool at_boundary = state <= Grammar::kBoundary;
  const auto allowed_if = [](bool allowed, int32_t next) {
    return allowed ? next : next | Grammar::kForbidden;
  };
  switch (token) {
    case Grammar::kBlank:
      return allowed_if(at_boundary, at_boundary ? state : Grammar::kBoundary);
    case Grammar::kText:
    case Grammar::kEnd:
      return allowed_if(at_boundary, Grammar::kBoundary);
    case Grammar::kFirstControl:
      return allowed_if(state == Grammar::kStart, Grammar::kBoundary);
    case Grammar::kLead2:
      return allowed_if(at_boundary, kOne);
    case Grammar::kLeadE0:
      return allowed_if(at_boundary, kAfterE0);
    case Grammar::kLead3:
      return allowed_if(at_boundary, kTwo);
    case Grammar::kLeadED:
      return allowed_if(at_boundary, kAfterED);
    case Grammar::kLeadF0:
      return allowed_if(at_boundary, kAfterF0);
    case Grammar::kLead4:
      return allowed_if(at_boundary, kThree);
    case Grammar::kLeadF4:
      return allowed_if(at_boundary, kAfterF4);
    case Grammar::kByte80:
    case Grammar::kByte90:
    case Grammar::kByteA0:
      switch (state) {
        case kOne:
          return Grammar::kBoundary;
        case kTwo:
          return kOne;
        case kThree:
          return kTwo;
        case kAfterE0:  // excludes overlong forms
          return allowed_if(token == Grammar::kByteA0, kOne);
        case kAfterED:  // excludes surrogates
          return allowed_if(token != Grammar::kByteA0, kOne);
        case kAfterF0:
          return allowed_if(token != Grammar::kByte80, kTwo);
        case kAfterF4:  // excludes code points above U+10FFFF
          return allowed_if(token == Grammar::kByte80, kTwo);
        default:
          return allowed_if(false, Grammar::kBoundary);
      }
    default:
      return allowed_if(false, Grammar::kBoundary);
  }
}

}  // namespace

TokenGrammar::Class TokenGrammar::OfByte(uint8_t byte) {
  if (byte < 0x80) return kText;
  if (byte < 0x90) return kByte80;
  if (byte < 0xA0) return kByte90;
  if (byte < 0xC0) return kByteA0;
  if (byte < 0xC2) return kControl;
  if (byte < 0xE0) return kLead2;
  if (byte == 0xE0) return kLeadE0;
  if (byte == 0xED) return kLeadED;
  if (byte < 0xF0) return kLead3;
  if (byte == 0xF0) return kLeadF0;
  if (byte < 0xF4) return kLead4;
  return byte == 0xF4 ? kLeadF4 : kControl;
}

int TokenGrammar::Tail(State state) {
  switch (state) {
    case kStart:
    case kBoundary:
      return 0;
    case kOne:
      return 1;
    case kTwo:
    case kAfterE0:
    case kAfterED:
      return 2;
    default:
      return 3;
  }
}

int32_t TokenGrammar::Transition(State state, TokenId token) const {
  return Step(state, classes_[token]);
}

TokenGrammar::TokenGrammar(std::vector<Class> classes) : classes_(std::move(classes)) {
  const auto forbidden = [this](State state, int left) {
    std::vector<TokenId> tokens;
    for (TokenId token = 0; token < std::ssize(classes_); ++token) {
      const int32_t next = Transition(state, token);
      if ((next & kForbidden) != 0 || Tail(next & 0xff) > left) tokens.push_back(token);
    }
    return tokens;
  };
  for (TokenId token = 0; token < std::ssize(classes_); ++token) {
    if (classes_[token] >= kByte80) byte_pieces_.push_back(token);
  }
  for (State state : {kStart, kBoundary}) {
    for (int left = 0; left <= kMaxTail; ++left) at_boundary_[state][left] = forbidden(state, left);
  }
  for (State state = kBoundary + 1; state < kStates; ++state)
    in_character_[state] = forbidden(state, kMaxTail);
}

std::span<const TokenId> TokenGrammar::ForbiddenTokens(State state, int left) const {
  if (state > kBoundary) return in_character_[state];
  return at_boundary_[state][std::clamp(left, 0, kMaxTail)];
}

std::vector<int32_t> TokenGrammar::Transitions() {
  std::vector<int32_t> transitions;
  for (State state = 0; state < kStates; ++state) {
    for (int token = 0; token < kClasses; ++token)
      transitions.push_back(Step(state, static_cast<Class>(token)));
  }
  return transitions;
}

std::vector<int32_t> TokenGrammar::Tails() {
  std::vector<int32_t> tails;
  for (State state = 0; state < kStates; ++state) tails.push_back(Tail(state));
  return tails;
}

}  // namespace linnet::model
