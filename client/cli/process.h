#pragma once

#include "client/cli/settings.h"

namespace linnet::client {

// The environment of this process.
Variables ReadVariables();
// Of the terminal on standard error; 80 if there is none.
int TerminalColumns();

}  // namespace linnet::client
