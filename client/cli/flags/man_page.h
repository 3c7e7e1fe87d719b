#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// The man page linnet(1) in troff's man macros, with the --help texts of `app` and its commands.
// help2man, tried instead, makes a page of its own for each command, joins the lines of an example
// to a paragraph and the columns of the settings to a text.
std::string ManPage(const CLI::App& app);

}  // namespace linnet::client
