#include "client/command/settings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/library/utf8.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

std::string Find(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

bool IsSetting(absl::string_view name) {
  const auto& names = SettingNames();
  return std::any_of(names.begin(), names.end(),
                     [name](const SettingName& setting) { return name == setting.name; });
}

absl::Status AddSettings(const std::string& path, std::istream& in, Settings* settings) {
  int number = 0;
  for (std::string text; std::getline(in, text);) {
    absl::string_view line = text;
    if (++number == 1) absl::ConsumePrefix(&line, kByteOrderMark);
    line = absl::StripAsciiWhitespace(line);
    const std::string place = absl::StrCat(path, ":", number, ": ");
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(place, "\"", line, "\" is not NAME = VALUE"));
    }
    const std::string name(absl::StripAsciiWhitespace(line.substr(0, equals)));
    if (!IsSetting(name)) {
      const auto format = [](std::string* out, const SettingName& s) { out->append(s.name); };
      return absl::InvalidArgumentError(absl::StrCat(place, "no setting \"", name, "\"; there are ",
                                                     absl::StrJoin(SettingNames(), ", ", format)));
    }
    (*settings)[name] = std::string(absl::StripAsciiWhitespace(line.substr(equals + 1)));
  }
  return absl::OkStatus();
}

bool IsTrue(absl::string_view value) {
  return value == "true" || value == "yes" || value == "on" || value == "1";
}
bool IsFalse(absl::string_view value) {
  return value == "false" || value == "no" || value == "off" || value == "0";
}

// True if TLS is switched off: by the last --tls of the arguments, else by the setting.
bool TlsIsOff(const Settings& settings, const std::vector<std::string>& arguments) {
  const auto tls = settings.find("tls");
  bool off = tls != settings.end() && IsFalse(tls->second);
  for (absl::string_view argument : arguments) {
    if (argument == "--") break;  // texts follow
    if (argument == "--tls") off = false;
    if (absl::ConsumePrefix(&argument, "--tls=")) off = IsFalse(argument);
  }
  return off;
}

bool IsTyped(const CLI::Option& option, const std::vector<std::string>& arguments) {
  for (const std::string& name : option.get_lnames()) {
    const std::string flag = "--" + name;
    for (const std::string& argument : arguments) {
      if (argument == "--") break;  // texts follow
      if (argument == flag || absl::StartsWith(argument, flag + "=")) return true;
    }
  }
  return false;
}

// True if the flag has that value among the arguments.
bool IsTypedAs(const std::string& flag, const std::string& value,
               const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;  // texts follow
    if (arguments[i] == flag + "=" + value) return true;
    if (arguments[i] == flag && i + 1 < arguments.size() && arguments[i + 1] == value) return true;
  }
  return false;
}

// True if a setting of this flag would break a command whose typed arguments do without it.
bool IsReplaced(const CLI::Option& option, const CLI::App& command,
                const std::vector<std::string>& arguments) {
  for (const CLI::Option* excluded : option.get_excludes()) {
    if (IsTyped(*excluded, arguments)) return true;
  }
  // A summary has the language of its text.
  if (option.check_lname("to") && command.get_option_no_throw("--task") != nullptr &&
      IsTypedAs("--task", "summarize", arguments)) {
    return true;
  }
  if (command.get_name() != "score" || !(option.check_lname("to") || option.check_lname("from"))) {
    return false;
  }
  // A named model has languages of its own, and that of a summariser has no target language.
  return IsTyped(*command.get_option("--model"), arguments) &&
         !IsTyped(*command.get_option("--to"), arguments);
}

}  // namespace

const std::vector<SettingName>& SettingNames() {
  static const auto& names = *new std::vector<SettingName>{
      {"server", "the server"},
      {"timeout", "of each call"},
      {"wait", "for a server that is starting"},
      {"tls", "true: encrypt; false: plain text"},
      {"tls-ca", "trusted certificate authorities"},
      {"tls-cert", "client certificate"},
      {"tls-key", "key of the client certificate"},
      {"tls-server-name", "name in the server's certificate"},
      {"token-file", "bearer token, sent with each call"},
      {"from", "language of texts to translate"},
      {"to", "language to translate to"},
      {"language", "language of texts to summarise"},
  };
  return names;
}

std::string SettingsFile(const Variables& variables) {
  if (std::string path = Find(variables, "LINNET_CONFIG"); !path.empty()) return path;
  if (std::string path = Find(variables, "XDG_CONFIG_HOME"); !path.empty()) {
    return path + "/linnet/config";
  }
  const std::string home = Find(variables, "HOME");
  return home.empty() ? "" : home + "/.config/linnet/config";
}

absl::StatusOr<Settings> ReadSettings(const Variables& variables) {
  Settings settings;
  const std::string path = SettingsFile(variables);
  if (!path.empty()) {
    std::ifstream file(path);
    const bool readable = file.is_open() && (file.peek() != EOF || file.eof());
    if (readable) {
      file.clear();
      RETURN_IF_ERROR(AddSettings(path, file, &settings));
    } else if ((errno != ENOENT && errno != ENOTDIR) || !Find(variables, "LINNET_CONFIG").empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read the settings in \"", path, "\": ", std::strerror(errno)));
    }
  }
  for (const SettingName& setting : SettingNames()) {
    std::string name = absl::StrReplaceAll(setting.name, {{"-", "_"}});
    absl::AsciiStrToUpper(&name);
    const std::string value = Find(variables, "LINNET_" + name);
    if (!value.empty()) settings[setting.name] = value;
  }
  for (auto it = settings.begin(); it != settings.end();) {
    it = it->second.empty() ? settings.erase(it) : std::next(it);
  }
  return settings;
}

absl::StatusOr<std::vector<std::string>> WithSettings(Settings settings, const CLI::App& app,
                                                      std::vector<std::string> arguments) {
  const CLI::App* command = &app;
  auto place = arguments.begin();
  if (!app.get_subcommands({}).empty()) {
    if (arguments.empty()) return arguments;
    command = nullptr;
    for (const CLI::App* named : app.get_subcommands({})) {
      if (named->get_name() == arguments[0]) command = named;
    }
    if (command == nullptr) return arguments;
    ++place;
  }
  // Otherwise a tls-ca in the file, which alone enables TLS, could not be overridden.
  if (TlsIsOff(settings, arguments)) {
    std::erase_if(settings,
                  [](const auto& setting) { return absl::StartsWith(setting.first, "tls"); });
  }
  std::vector<std::string> flags;
  for (const auto& [name, value] : settings) {
    const CLI::Option* option = command->get_option_no_throw("--" + name);
    if (option == nullptr || IsReplaced(*option, *command, arguments)) continue;
    if (option->get_items_expected_max() > 0) {
      flags.push_back(absl::StrCat("--", name, "=", value));
    } else if (IsTrue(value)) {
      flags.push_back(absl::StrCat("--", name));
    } else if (!IsFalse(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting ", name, ": \"", value, "\" is no choice of true and false"));
    }
  }
  arguments.insert(place, flags.begin(), flags.end());
  return arguments;
}

}  // namespace linnet::client
