#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// A text that a target spells after its prefix, in any tokens: a part of a word says little about
// the tokens in which the model writes the whole word. Tokenizer::Spell makes it.
struct SpelledStart {
  // The tokens that may come next, ascending, and the bytes of `text` that are spelled with each of
  // them. The last token may spell more than the text. Without any, no tokens lead here.
  struct Place {
    std::vector<TokenId> tokens;
    std::vector<int> spelled;  // parallel to them
  };

  std::string text;           // a word begins with a blank
  std::vector<Place> places;  // one for each byte of the text: that many are spelled
};

}  // namespace linnet::model
