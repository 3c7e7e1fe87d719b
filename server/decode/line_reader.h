#pragma once

#include <cstddef>
#include <string>

namespace linnet::server {

// Lines from a file descriptor, without waiting for one while there is other work.
class LineReader {
 public:
  enum class Result { kLine, kTooLong, kNothingYet, kEnd };

  // Of a line with more bytes than this only the fact is told.
  LineReader(int descriptor, size_t max_line_bytes)
      : descriptor_(descriptor), max_line_bytes_(max_line_bytes) {}

  // The next line, without its "\n". If there is none yet: waits for it, or says kNothingYet.
  Result Next(bool wait, std::string& line);

 private:
  bool Fill(bool wait);  // false: nothing yet

  int descriptor_;
  size_t max_line_bytes_;
  std::string buffer_;
  size_t searched_ = 0;    // no line ends in front of this
  bool skipping_ = false;  // inside a line that is too long
  bool end_ = false;
};

}  // namespace linnet::server
