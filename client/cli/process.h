#pragma once

#include "client/cli/flags/settings.h"

namespace linnet::client {

// Opens /dev/null in place of closed standard files, so that no other file gets their numbers.
// Using them still fails: it is opened to write as standard input, and to read as the other two.
// Call it first in main.
void OpenStandardFiles();
// The environment variables of this process.
Variables ReadVariables();
// The width of the terminal on standard error; 80 if there is none.
int TerminalColumns();

}  // namespace linnet::client
