// The command `linnet`, without the process around it: main.cc brings that.
#pragma once

#include <istream>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

namespace linnet::client {

struct Environment {
  std::istream& in;
  std::ostream& out;             // data
  std::ostream& err;             // everything else
  std::string server;            // LINNET_SERVER; empty if it is not set
  bool in_is_terminal = false;   // then somebody is told that he is waited for
  std::stop_token stop;          // ends calls and reading
  bool out_is_terminal = false;  // then answers are written as they become certain
};

// Exit statuses. A call that fails gives 64 + the number of its gRPC code: 78 = 64 + UNAVAILABLE.
inline constexpr int kExitOk = 0;
inline constexpr int kExitLocal =
    1;  // a text that cannot be read or is not UTF-8, output that cannot be written
inline constexpr int kExitUsage = 2;
inline constexpr int kExitCode = 64;

// `arguments` as given behind the command's name.
int RunCli(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace linnet::client
