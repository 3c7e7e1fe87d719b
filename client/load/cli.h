// The command `linnet-load`, without the process around it: load_main.cc brings that.
#pragma once

#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

namespace linnet::client {

struct LoadEnvironment {
  std::ostream& out;     // the report
  std::ostream& err;     // everything else
  std::string server;    // LINNET_SERVER; empty if it is not set
  std::stop_token stop;  // ends the run with a report of what was measured
};

// `arguments` as given behind the command's name. Exit status: 0, 1 if no call was answered, 2
// wrong usage, 64 + the gRPC code if the server cannot be reached at the start.
int RunLoadCli(const std::vector<std::string>& arguments, const LoadEnvironment& environment);

}  // namespace linnet::client
