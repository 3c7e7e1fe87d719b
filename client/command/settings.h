// Default values of flags, from the environment and from a file. CLI11's own set_config and envname
// do not fit: there the file overrides the environment, and a command's flags are read only from a
// section with its name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace linnet::client {

using Variables = std::map<std::string, std::string>;  // the environment

// Values by the names of their flags: "token-file".
using Settings = std::map<std::string, std::string>;

struct SettingName {
  const char* name;
  const char* about;
};
// All settings. The environment variable of each is LINNET_ and its name: LINNET_TOKEN_FILE.
const std::vector<SettingName>& SettingNames();

// The path of the settings file: LINNET_CONFIG, else linnet/config in XDG_CONFIG_HOME or ~/.config.
// Empty without a home directory.
std::string SettingsFile(const Variables& variables);

// Reads the settings. The environment overrides the file, whose lines are "name = value"; # begins
// a comment. An empty value means unset. INVALID_ARGUMENT if the file has an unknown name or cannot
// be read; only the default file may be absent.
absl::StatusOr<Settings> ReadSettings(const Variables& variables);

// Inserts the settings as flags before the given arguments, so that those win, and after the
// command if `app` has commands. Omits settings for which the command has no flag or whose flag a
// given one excludes, the languages of `linnet score` if a model is given instead, and every tls-…
// setting if tls is off. INVALID_ARGUMENT if a boolean is neither true nor false.
absl::StatusOr<std::vector<std::string>> WithSettings(Settings settings, const CLI::App& app,
                                                      std::vector<std::string> arguments);

}  // namespace linnet::client
