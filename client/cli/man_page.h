#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// linnet(1) in troff's man macros: all that --help of `app` and of its commands say.
std::string ManPageOf(const CLI::App& app);

}  // namespace linnet::client
