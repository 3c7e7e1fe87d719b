// The command `linnet`: RunCli with the process around it. The first SIGINT or SIGTERM ends calls
// and reading, so that what was answered is written and the rest is reported; the second one ends
// the process.
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <streambuf>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/signals.h"

namespace {

// Standard input that a stop ends, and that knows whether there is something to read.
class StandardInput : public std::streambuf {
 public:
  // `stopped` becomes readable when reading shall end.
  explicit StandardInput(int stopped) : stopped_(stopped) {}

 protected:
  int_type underflow() override {
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {stopped_, POLLIN, 0}};
    if (poll(files, 2, -1) < 0 || files[1].revents != 0) return traits_type::eof();
    const ssize_t count = read(STDIN_FILENO, buffer_.data(), buffer_.size());
    if (count <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

  // Bytes that can be had without waiting; the end of the input counts as none.
  std::streamsize showmanyc() override {
    int count = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &count) == 0 ? count : 0;
  }

 private:
  const int stopped_;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  linnet::client::SignalWatcher signals;
  StandardInput buffer(signals.event());
  std::istream in(&buffer);
  const char* server = std::getenv("LINNET_SERVER");
  const linnet::client::Environment environment = {
      in,
      std::cout,
      std::cerr,
      server == nullptr ? "" : server,
      isatty(STDIN_FILENO) != 0,
      signals.token(),
      isatty(STDOUT_FILENO) != 0,
  };
  return linnet::client::RunCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
