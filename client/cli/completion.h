#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// What makes `shell` ("bash", "zsh" or "fish") complete the commands of `app`, their flags, and
// what can stand behind a flag: files, or the words of a choice.
std::string CompletionOf(const CLI::App& app, const std::string& shell);

}  // namespace linnet::client
