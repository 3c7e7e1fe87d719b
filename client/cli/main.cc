// The command `linnet`: calls RunCli with the state of the process. The first SIGINT or SIGTERM
// ends calls and reading, so that finished answers are written and the rest is reported; the second
// one ends the process.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/command/process.h"
#include "client/command/signals.h"
#include "client/command/text/input_buffer.h"
#include "proto/standard_files.h"

namespace {

int64_t SizeOfInput() {
  struct stat found = {};
  return fstat(STDIN_FILENO, &found) == 0 && S_ISREG(found.st_mode) ? found.st_size : 0;
}

}  // namespace

int main(int argc, char** argv) {
  linnet::OpenStandardFiles();
  std::ios::sync_with_stdio(false);
  // gRPC would log what our errors say anyway. A user who needs its log can set the variable.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Without calls in flight, as between two lines of slow input, gRPC polls a connection every 5 s
  // only, and reconnecting takes several polls.
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200", /*overwrite=*/0);
  // If the reader of a pipe closes it early, the write must return EPIPE.
  signal(SIGPIPE, SIG_IGN);
  linnet::client::SignalWatcher signals;
  linnet::client::InputBuffer buffer(STDIN_FILENO, signals.event());
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
      signals.event(),
  };
  return linnet::client::RunCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
