// The command `linnet`: RunCli with the process around it. The first SIGINT or SIGTERM ends calls
// and reading, so that what was answered is written and the rest is reported; the second one ends
// the process.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <streambuf>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/process.h"
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

int64_t SizeOfInput() {
  struct stat found = {};
  return fstat(STDIN_FILENO, &found) == 0 && S_ISREG(found.st_mode) ? found.st_size : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  // gRPC would write beside us what our errors say anyway. Whoever looks for more may set it.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Between calls, as the shell has them, gRPC would look after a connection every 5 s, and one
  // that is made anew takes several looks.
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200", /*overwrite=*/0);
  // Whoever reads our output may go before its end; a write tells it then.
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
