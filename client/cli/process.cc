#include "client/cli/process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

namespace linnet::client {

void OpenStandardFiles() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) == 0) continue;
    // It was closed, also if it has FD_CLOEXEC now: gRPC's initialisation, before main, leaves an
    // unused eventfd behind as file 0.
    close(file);
    // A new file gets the lowest free number, which is this one.
    open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

Variables ReadVariables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

int TerminalColumns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace linnet::client
