// The command `linnet` as a function; main.cc provides the process state as an Environment.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "client/command/exit_status.h"

namespace linnet::client {

struct Environment {
  std::istream& in;
  std::ostream& out;                             // data
  std::ostream& err;                             // everything else
  std::map<std::string, std::string> variables;  // environment variables; see settings.h
  bool in_is_terminal = false;                   // then a hint is written before reading it
  std::stop_token stop;                          // ends calls and reading
  bool out_is_terminal = false;                  // then answers are streamed
  bool err_is_terminal = false;                  // then progress is shown
  int columns = 80;                              // width of standard error's terminal
  int64_t in_bytes = 0;                          // size of standard input if it is a file
  int stop_event = -1;                           // becomes readable when a stop is requested
};

// True on a terminal, unless NO_COLOR is set: https://no-color.org.
bool WantsColour(const Environment& environment);

// `arguments` are those after the command's name. Returns the exit status.
int RunCli(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace linnet::client
