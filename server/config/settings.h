#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace linnet::server {

// Adds all settings to the command line, in the order of --help-all, with the values of `options`
// as defaults. Parsing writes into `options`, which must outlive `app`. Durations are in seconds.
void AddSettings(CLI::App& app, Options& options);

// True for a setting, false for a flag such as --help.
bool IsSetting(const CLI::Option& option);
// True for the settings that most servers set: --help shows these alone.
bool IsCommonSetting(const CLI::Option& option);

// Says what replaces a setting of earlier versions; nullopt for any other name.
std::optional<std::string> RemovedSettingError(absl::string_view name);

// Derives options from others. InvalidArgumentError if a setting is missing, or if two contradict
// each other.
absl::Status CompleteOptions(Options& options);

}  // namespace linnet::server
