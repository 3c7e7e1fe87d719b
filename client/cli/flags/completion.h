#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// A script for `shell` ("bash", "zsh" or "fish") that completes the commands of `app`, their flags
// and the values of flags: files, or the words of a choice.
std::string CompletionScript(const CLI::App& app, const std::string& shell);

}  // namespace linnet::client
