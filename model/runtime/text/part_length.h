#pragma once

#include <cstdint>

namespace linnet::model {

// Guesses how many bytes of a text are one part of at most `max_tokens`, from the tokens of those
// starts of the part that were counted. Mostly all bytes have about as many tokens. Some text has
// many more of them behind some place: protected spans, for example, once no stand-in is left.
class PartLength {
 public:
  explicit PartLength(int max_tokens) : max_tokens_(max_tokens) {}

  // That many bytes at the begin of the part have that many tokens, at least one.
  void Add(int64_t bytes, int tokens);
  bool known() const { return longest_.bytes > 0 || unfit_.bytes > 0; }
  // About how many bytes a part has; some fewer if tokens were seen to be unequally long. Requires
  // that a start is known.
  int64_t Guess() const;
  // About how many bytes have that many tokens. Requires that a start is known.
  int64_t Bytes(double tokens) const;
  // Begins the next part, whose last tokens are probably as long as those of this one.
  void StartNext();

 private:
  struct Start {
    int64_t bytes = 0;
    int tokens = 0;
  };

  double TokensPerByte() const;  // behind the longest start that fits

  int max_tokens_;
  Start longest_;  // that fits
  Start unfit_;    // the shortest that does not fit; without bytes if there is none
  double last_tokens_per_byte_ = 0;  // at the end of the part before; 0 if it is not known
};

}  // namespace linnet::model
