#include "server/base/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace linnet::server {

bool LineWriter::Write(absl::string_view line) {
  if (cut_off_) {
    absl::string_view end = "\n";
    if (!WritePart(end)) return false;
    cut_off_ = false;
  }
  absl::string_view rest = line;
  while (!rest.empty()) {
    if (WritePart(rest)) continue;
    cut_off_ = rest.size() < line.size();
    return false;
  }
  return true;
}

bool LineWriter::WritePart(absl::string_view& rest) {
  pollfd room = {file_, POLLOUT, 0};
  if (poll(&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0) return false;
  ssize_t written;
  do {
    written = write(file_, rest.data(), std::min<size_t>(rest.size(), PIPE_BUF));
  } while (written < 0 && errno == EINTR);
  if (written <= 0) return false;
  rest.remove_prefix(static_cast<size_t>(written));
  return true;
}

}  // namespace linnet::server
