#pragma once

#include "CLI/CLI.hpp"
#include "client/library/client.h"

namespace linnet::client {

// Adds the flags of the connection to a server. The last value of a flag wins, so that settings can
// be put before the arguments. `options` must outlive the parsing.
void AddConnectionFlags(CLI::App* command, ClientOptions* options);

}  // namespace linnet::client
