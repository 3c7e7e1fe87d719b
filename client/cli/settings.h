// What need not be said with every command: from the environment and from a file.
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

// Values by the names of the flags that they stand for: "token-file".
using Settings = std::map<std::string, std::string>;

struct SettingName {
  const char* name;
  const char* about;
};
// All there are. In the environment each is LINNET_ and its name: LINNET_TOKEN_FILE.
const std::vector<SettingName>& SettingNames();

// The file that holds settings: LINNET_CONFIG, else linnet/config in XDG_CONFIG_HOME or ~/.config.
// Empty if there is no home.
std::string SettingsFile(const Variables& variables);

// The environment goes before the file, whose lines are "name = value"; # begins a comment. An
// empty value is none. INVALID_ARGUMENT if the file cannot be read, unless it is the one of the
// home, which need not be there, and if it has a name that is none of SettingNames.
absl::StatusOr<Settings> ReadSettings(const Variables& variables);

// `arguments` with the settings put before them as flags, so that those that were given win: behind
// the command, where `app` has commands. Settings for which the command has no flag are left out.
// Where tls is off, so is every tls-… setting. INVALID_ARGUMENT if a yes-or-no is neither.
absl::StatusOr<std::vector<std::string>> WithSettings(Settings settings, const CLI::App& app,
                                                      std::vector<std::string> arguments);

}  // namespace linnet::client
