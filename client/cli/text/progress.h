#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace linnet::client {

// The progress of a command. `lines` and `bytes` of the input are answered.
struct Advance {
  int64_t lines = 0;
  int64_t bytes = 0;
  int64_t first_byte = 0;   // the bytes before it were answered by an earlier run
  int64_t total_bytes = 0;  // 0: unknown
  absl::Duration elapsed;
};

// "1:02:03", "2:03", "0:07"
std::string ClockText(absl::Duration duration);

// " 37% ━━━━━━━───────────── 12345 lines, 64/s, 2:13 left" in at most `columns` columns, or without
// a total "12345 lines, 64/s, 0:12".
std::string ProgressText(const Advance& advance, int columns, bool colour);

// Shows the progress on the last line of a terminal. Not thread-safe.
class Progress {
 public:
  // Writes nothing at all unless `shown`.
  Progress(std::ostream& out, bool shown, int columns, bool colour)
      : out_(out), shown_(shown), columns_(columns), colour_(colour) {}
  ~Progress() { Clear(); }

  // Redraws the line, but only a few times a second.
  void Update(const Advance& advance, absl::Time now);
  // Clears the line. Call it before anything else is written to the terminal.
  void Clear();
  // Replaces the line by "12345 lines in 3:12, 64/s".
  void Finish(const Advance& advance);

 private:
  std::ostream& out_;
  const bool shown_;
  const int columns_;
  const bool colour_;
  bool drawn_ = false;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace linnet::client
