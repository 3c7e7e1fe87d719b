// The command `linnet-load`: RunLoadCli with the process around it.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/signals.h"
#include "client/load/cli.h"

int main(int argc, char** argv) {
  linnet::client::SignalWatcher signals;
  const char* server = std::getenv("LINNET_SERVER");
  const linnet::client::LoadEnvironment environment = {
      std::cout, std::cerr, server == nullptr ? "" : server, signals.token()};
  return linnet::client::RunLoadCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
