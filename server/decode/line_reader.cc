#include "server/decode/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace linnet::server {

LineReader::Result LineReader::Next(bool wait, std::string& line) {
  while (true) {
    const size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      line.assign(buffer_, 0, end);
      buffer_.erase(0, end + 1);
      searched_ = 0;
      const bool too_long = std::exchange(skipping_, false) || line.size() > max_line_bytes_;
      return too_long ? Result::kTooLong : Result::kLine;
    }
    if (buffer_.size() > max_line_bytes_) {
      skipping_ = true;
      buffer_.clear();
    }
    searched_ = buffer_.size();
    if (end_) {
      if (buffer_.empty() && !skipping_) return Result::kEnd;
      line = std::exchange(buffer_, {});  // the last line need not end in "\n"
      searched_ = 0;
      return std::exchange(skipping_, false) ? Result::kTooLong : Result::kLine;
    }
    if (!Fill(wait)) return Result::kNothingYet;
  }
}

bool LineReader::Fill(bool wait) {
  pollfd readable = {.fd = descriptor_, .events = POLLIN, .revents = 0};
  if (!wait && poll(&readable, 1, 0) == 0) return false;
  char bytes[1 << 16];
  ssize_t count;
  do {
    count = read(descriptor_, bytes, sizeof(bytes));
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    buffer_.append(bytes, count);
  } else {
    end_ = true;
    if (count < 0) {
      status_ =
          absl::UnavailableError(absl::StrCat("cannot read the input: ", std::strerror(errno)));
    }
  }
  return true;
}

}  // namespace linnet::server
