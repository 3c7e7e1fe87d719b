// The command `linnet-load` as a function; main.cc provides the process state.
#pragma once

#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "client/command/settings.h"

namespace linnet::client {

struct LoadEnvironment {
  std::ostream& out;             // the report
  std::ostream& err;             // everything else
  Variables variables;           // LINNET_SERVER and others, see settings.h
  std::stop_token stop;          // ends the run with a report of what was measured
  bool err_is_terminal = false;  // then progress is shown
  int columns = 80;              // width of standard error's terminal
};

// `arguments` are those after the command's name. Returns the exit status: 0; 1 if no call was
// answered, no rate was found or a report could not be written; 2 for wrong usage; 64 + the gRPC
// code if the server cannot be reached at the start.
int RunLoadCli(const std::vector<std::string>& arguments, const LoadEnvironment& environment);

}  // namespace linnet::client
