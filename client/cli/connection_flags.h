#pragma once

#include "CLI/CLI.hpp"
#include "client/library/client.h"

namespace linnet::client {

// The flags that say which server is called, and how. The last of several counts, so that settings
// can stand before them. `options` must outlive the parsing.
void AddConnectionFlags(CLI::App* command, ClientOptions* options);

}  // namespace linnet::client
