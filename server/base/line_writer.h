#pragma once

#include "absl/strings/string_view.h"

namespace linnet::server {

// Writes lines to a file descriptor without blocking on its reader: a stalled reader of the log
// must not stall the server.
//
// A line for which there is no room now is dropped. The descriptor's flags are shared with other
// processes, so O_NONBLOCK is not set; instead poll reports room, and a pipe that is writable takes
// PIPE_BUF bytes without blocking (pipe(7)), as do sockets and terminals. A write to a disk may
// block. Not thread-safe.
class LineWriter {
 public:
  // The descriptor outlives the writer.
  explicit LineWriter(int file) : file_(file) {}

  // `line` includes its line end. Returns false if the line was dropped, because there was no room
  // or the write failed. A line longer than PIPE_BUF may then be cut off; the next line starts on a
  // new line.
  bool Write(absl::string_view line);

 private:
  bool WritePart(absl::string_view& rest);

  const int file_;
  bool cut_off_ = false;  // the last line was written in part
};

}  // namespace linnet::server
