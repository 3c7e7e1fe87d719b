// The command `linnet-load`: RunLoadCli with the process around it.
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "client/command/process.h"
#include "client/command/signals.h"
#include "client/load/cli.h"
#include "proto/standard_files.h"

int main(int argc, char** argv) {
  linnet::OpenStandardFiles();
  linnet::client::SignalWatcher signals;
  const linnet::client::LoadEnvironment environment = {
      std::cout,
      std::cerr,
      linnet::client::ReadVariables(),
      signals.token(),
      isatty(STDERR_FILENO) == 1,
      linnet::client::TerminalColumns(),
  };
  return linnet::client::RunLoadCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
