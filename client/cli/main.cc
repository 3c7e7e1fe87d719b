// The command `linnet`: calls RunCli with the state of the process. The first SIGINT or SIGTERM
// ends calls and reading, so that finished answers are written and the rest is reported; the second
// one ends the process.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ios>
#include <iostream>
#include <streambuf>
#include <string>
#include <system_error>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/process.h"
#include "client/cli/signals.h"

namespace {

// A buffer over standard input whose reads a stop ends and that reports available bytes. Throws on
// a read error, as std::filebuf does: at an end of input, the text would pass as a shorter one.
class StandardInput : public std::streambuf {
 public:
  // Reading ends when the descriptor `stopped` becomes readable.
  explicit StandardInput(int stopped) : stopped_(stopped) {}

 protected:
  int_type underflow() override {
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {stopped_, POLLIN, 0}};
    ssize_t count = -1;
    while (count < 0) {
      const int ready = poll(files, 2, -1);
      if (ready > 0 && files[1].revents != 0) return traits_type::eof();
      if (ready > 0) count = read(STDIN_FILENO, buffer_.data(), buffer_.size());
      if (count < 0 && errno != EINTR && errno != EAGAIN) {
        throw std::ios_base::failure("standard input",
                                     std::error_code(errno, std::generic_category()));
      }
    }
    if (count == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

  // The number of bytes that can be read without blocking; 0 at the end of the input.
  std::streamsize showmanyc() override {
    int count = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &count) == 0 ? count : 0;
  }

 private:
  const int stopped_;
  std::array<char, 1 << 16> buffer_;
};

int64_t SizeOfInput() {
  struct stat found = {};
  return fstat(STDIN_FILENO, &found) == 0 && S_ISREG(found.st_mode) ? found.st_size : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  // gRPC would log what our errors say anyway. A user who needs its log can set the variable.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Without calls in flight, as between two lines of the shell, gRPC polls a connection every 5 s
  // only, and reconnecting takes several polls.
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200", /*overwrite=*/0);
  // If the reader of a pipe closes it early, the write must return EPIPE.
  signal(SIGPIPE, SIG_IGN);
  linnet::client::SignalWatcher signals;
  StandardInput buffer(signals.event());
  std::istream in(&buffer);
  const linnet::client::Environment environment = {
      in,
      std::cout,
      std::cerr,
      linnet::client::ReadVariables(),
      isatty(STDIN_FILENO) != 0,
      signals.token(),
      isatty(STDOUT_FILENO) != 0,
      isatty(STDERR_FILENO) != 0,
      linnet::client::TerminalColumns(),
      SizeOfInput(),
      [&signals] { return signals.Renew(); },
      signals.event(),
  };
  return linnet::client::RunCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
