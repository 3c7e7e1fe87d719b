// The command `linnet-load`: RunLoadCli with the process around it.
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "client/cli/signals.h"
#include "client/load/cli.h"

int main(int argc, char** argv) {
  linnet::client::SignalWatcher signals;
  linnet::client::Variables variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  winsize size = {};
  const bool sized = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const linnet::client::LoadEnvironment environment = {
      std::cout,
      std::cerr,
      variables,
      signals.token(),
      isatty(STDERR_FILENO) == 1,
      sized ? size.ws_col : 80,
  };
  return linnet::client::RunLoadCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
