#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace linnet::server {

// Reads lines from a file descriptor, blocking only if asked to.
class LineReader {
 public:
  enum class Result { kLine, kTooLong, kNothingYet, kEnd };

  // For a line with more than `max_line_bytes` only kTooLong is returned.
  LineReader(int descriptor, size_t max_line_bytes)
      : descriptor_(descriptor), max_line_bytes_(max_line_bytes) {}

  // Reads the next line, without its "\n". If there is none yet: blocks if `wait`, otherwise
  // returns kNothingYet.
  Result Next(bool wait, std::string& line);

  size_t max_line_bytes() const { return max_line_bytes_; }
  // After kEnd: not OK if reading failed before the end of the input.
  const absl::Status& status() const { return status_; }

 private:
  bool Fill(bool wait);  // returns false if there is nothing to read yet

  int descriptor_;
  size_t max_line_bytes_;
  std::string buffer_;
  size_t searched_ = 0;    // no line ends before this position
  bool skipping_ = false;  // inside a line that is too long
  bool end_ = false;
  absl::Status status_;
};

}  // namespace linnet::server
