#pragma once

#include <string_view>

namespace linnet::server {

// Writes lines to a file descriptor and never waits for whoever reads them: a reader that stands
// still shall not make its writer stand still.
//
// A line for which there is no room now is not written. The descriptor keeps its flags, which it
// shares with other processes; whether there is room is asked beforehand (poll), and a pipe that
// says so takes PIPE_BUF bytes at once (pipe(7)). So do sockets and terminals. A disk that does not
// answer is waited for. Not thread-safe.
class LineWriter {
 public:
  // The descriptor outlives the writer.
  explicit LineWriter(int file) : file_(file) {}

  // With its line end. False if it is lost, for want of room or because it cannot be written at
  // all; a line of more than PIPE_BUF bytes may be cut off then, and the next one begins anew.
  bool Write(std::string_view line);

 private:
  bool WritePart(std::string_view& rest);

  const int file_;
  bool cut_off_ = false;  // what was written last does not end
};

}  // namespace linnet::server
