#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// The man page linnet(1) in troff's man macros, with the --help texts of `app` and its commands.
std::string ManPageOf(const CLI::App& app);

}  // namespace linnet::client
