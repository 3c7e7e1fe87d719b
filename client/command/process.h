#pragma once

#include "client/command/settings.h"

namespace linnet::client {

// The environment variables of this process.
Variables ReadVariables();
// The width of the terminal on standard error; 80 if there is none.
int TerminalColumns();

}  // namespace linnet::client
