#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

// The parts of a fuzz target: libFuzzer's entry point, and a check that is active in every build.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace linnet::fuzz {

// An input: a few bytes that select variants, followed by a text.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  // Returns 0 … count - 1; 0 at the end of the input. Letters and digits select by their position
  // in the alphabet, so that a corpus can be written by hand.
  int Choose(int count) {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return (byte >= 'a' ? byte - 'a' : byte) % count;
  }
  std::string Rest() const { return std::string(rest_); }

 private:
  absl::string_view rest_;
};

}  // namespace linnet::fuzz
