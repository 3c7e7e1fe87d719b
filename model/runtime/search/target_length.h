#pragma once

#include <span>
#include <string>

#include "model/runtime/search/token.h"

namespace linnet::model {

// The rules of a wished length: when a target may end, and when it should. A search asks for each
// live hypothesis before every step. Implementations are immutable, so thread-safe.
class TargetLength {
 public:
  enum class State {
    kShort,   // it must not end
    kEnough,  // it may end or go on
    kFull,    // no further word begins: it ends, or completes a word or a mark
  };

  virtual ~TargetLength() = default;

  // `target` is what has been decoded, without eos and without what the model forces.
  virtual State After(std::span<const TokenId> target) const = 0;
  // The tokens that begin a word, ascending.
  virtual std::span<const TokenId> word_starts() const = 0;
  // "3 to 4 words". For one tokenizer, equal names mean equal rules.
  virtual std::string name() const = 0;
};

}  // namespace linnet::model
