#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace linnet::client {

// How far a command got. `bytes` are those of the input that were answered.
struct Advance {
  int64_t lines = 0;
  int64_t bytes = 0;
  int64_t first_byte = 0;   // what lies before was done by an earlier run
  int64_t total_bytes = 0;  // 0: nobody knows
  absl::Duration elapsed;
};

// "1:02:03", "2:03", "0:07"
std::string ClockText(absl::Duration duration);

// " 37% ━━━━━━━───────────── 12345 lines, 64/s, 2:13 left" in at most `columns`; without a total,
// "12345 lines, 64/s, 0:12".
std::string ProgressText(const Advance& advance, int columns, bool colour);

// That line at the foot of a terminal, as long as something is under way.
class Progress {
 public:
  // Not `shown`: nothing is ever written.
  Progress(std::ostream& out, bool shown, int columns, bool colour)
      : out_(out), shown_(shown), columns_(columns), colour_(colour) {}
  ~Progress() { Clear(); }

  // Draws anew, if the last time was a while ago.
  void Update(const Advance& advance, absl::Time now);
  // Takes the line away: before others write there.
  void Clear();
  // In its place at last: "12345 lines in 3:12, 64/s".
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
