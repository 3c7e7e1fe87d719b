#pragma once

#include <array>
#include <ios>
#include <streambuf>

namespace linnet::client {

// A buffer over a file descriptor, whose reads a stop ends. Throws std::ios_base::failure with the
// errno on a read error, as std::filebuf does, and with ECANCELED on a stop: at an end of input,
// the text would pass as a shorter one. Not thread-safe.
class InputBuffer : public std::streambuf {
 public:
  // Does not own `file`. Reading ends when the descriptor `stop_event` becomes readable; -1: never.
  InputBuffer(int file, int stop_event) : file_(file), stop_event_(stop_event) {}

 protected:
  int_type underflow() override;
  // The number of bytes that can be read without blocking; 0 at the end of the input.
  std::streamsize showmanyc() override;

 private:
  const int file_;
  const int stop_event_;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace linnet::client
