// The command `linnet`, without the process around it: main.cc brings that.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

namespace linnet::client {

struct Environment {
  std::istream& in;
  std::ostream& out;                             // data
  std::ostream& err;                             // everything else
  std::map<std::string, std::string> variables;  // settings.h tells which are looked at
  bool in_is_terminal = false;                   // then somebody is told that he is waited for
  std::stop_token stop;                          // ends calls and reading
  bool out_is_terminal = false;                  // then answers are written as they become certain
  bool err_is_terminal = false;                  // then progress is shown
  int columns = 80;                              // of that terminal
  int64_t in_bytes = 0;                          // of standard input, where that is a file
  // For `shell`, whose calls are stopped one by one: a new token for the next one. May be empty.
  std::function<std::stop_token()> renew_stop = nullptr;
  int stop_event = -1;  // becomes readable with the stop
};

// On a terminal. Not if NO_COLOR says so: https://no-color.org.
bool WantsColour(const Environment& environment);

// Exit statuses. A call that fails gives 64 + the number of its gRPC code: 78 = 64 + UNAVAILABLE.
inline constexpr int kExitOk = 0;
inline constexpr int kExitLocal =
    1;  // a text that cannot be read or is not UTF-8, output that cannot be written
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;  // texts were refused and passed over, the others answered
inline constexpr int kExitCode = 64;

// `arguments` as given behind the command's name.
int RunCli(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace linnet::client
