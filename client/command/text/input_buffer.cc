#include "client/command/text/input_buffer.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace linnet::client {
namespace {

[[noreturn]] void Throw(int cause) {
  throw std::ios_base::failure("read", std::error_code(cause, std::generic_category()));
}

}  // namespace

InputBuffer::int_type InputBuffer::underflow() {
  pollfd files[] = {{file_, POLLIN, 0}, {stop_event_, POLLIN, 0}};  // poll skips a -1
  ssize_t count = -1;
  while (count < 0) {
    const int ready = poll(files, 2, -1);
    if (ready > 0 && files[1].revents != 0) Throw(ECANCELED);
    if (ready > 0) count = read(file_, buffer_.data(), buffer_.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) Throw(errno);
  }
  if (count == 0) return traits_type::eof();
  setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
  return traits_type::to_int_type(buffer_[0]);
}

std::streamsize InputBuffer::showmanyc() {
  int count = 0;
  return ioctl(file_, FIONREAD, &count) == 0 ? count : 0;
}

}  // namespace linnet::client
