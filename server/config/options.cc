#include "server/config/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <sstream>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/read_file.h"
#include "server/base/log.h"
#include "server/config/settings.h"

namespace linnet::server {
namespace {

constexpr int kUsageError = 2;
constexpr char kPrefix[] = "LINNET_SERVER_";

// Shows the common settings with --help, and all of them, by group, with --help-all.
class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::All)
      return CLI::Formatter::make_help(app, std::move(name), mode);
    const auto flags = app->get_options([](const CLI::Option* it) { return !IsSetting(*it); });
    const auto common =
        app->get_options([](const CLI::Option* it) { return IsCommonSetting(*it); });
    return absl::StrCat(make_description(app), make_usage(app, std::move(name)),
                        make_group("Options", false, flags),
                        make_group("Common settings; --help-all shows all", false, common));
  }
};

// The value of a line of the file, which is the text after its "=": between two quotes, or up to a
// comment. The parser of CLI11 would cut a quoted value at a "#", and take "[::]:1" for the begin
// of a list that ends in another line.
absl::StatusOr<std::string> ParseValue(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const char quote = text.front();
    // --print-config escapes nothing, so a quote may be part of the value.
    for (size_t end = text.find(quote, 1); end != absl::string_view::npos;
         end = text.find(quote, end + 1)) {
      const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(end + 1));
      if (rest.empty() || rest.front() == '#') return std::string(text.substr(1, end - 1));
    }
    return absl::InvalidArgumentError("has a value that begins with a quote and does not end so");
  }
  text = absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('#')));
  if (text.find_first_of(", \t") != absl::string_view::npos)
    return absl::InvalidArgumentError("has several values: quote one with a comma or a blank");
  return std::string(text);
}

// Collects the settings from the file, the environment and the flags, and parses them.
class Parser {
 public:
  Parser();

  ParsedOptions Parse(int argc, const char* const* argv,
                      const std::vector<std::string>& environment);

 private:
  absl::Status AddEnvironment(const std::vector<std::string>& environment,
                              std::vector<std::string>& arguments);
  absl::Status AddFile(std::vector<std::string>& arguments) const;
  std::vector<Setting> Settings() const;
  std::string PrintedConfig() const;

  CLI::App app_;
  Options options_;
  std::string config_;
  bool print_ = false;
};

Parser::Parser()
    : app_(
          "linnet-server: serves translation and summarisation over gRPC (linnet.v1.TextService).\n"
          "Prints \"ready grpc=HOST:PORT metrics=HOST:PORT\" on standard output when it is ready, "
          "with "
          "missing=NAME,NAME for bundles that --allow-missing true left out; logs go to standard "
          "error.\n"
          "Signals: SIGTERM and SIGINT drain the server, a second one ends it at once; SIGHUP "
          "reloads the models; SIGUSR1 logs everything, SIGUSR2 restores --log-level.\n"
          "Each flag --some-name can also be set as LINNET_SERVER_SOME_NAME in the environment "
          "and as some-name = VALUE in a file; flags override the environment, which overrides "
          "the file.\n"
          "Exit status: 0 stopped by a signal, 1 failed to start, 2 bad flags, 3 an engine "
          "stalled, lost its device or could not be restarted: start the server again.",
          "linnet-server") {
  app_.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app_.formatter(std::make_shared<Help>());
  app_.set_help_all_flag("--help-all", "Print all settings, by group, and exit");
  app_.set_version_flag("--version", "linnet-server " LINNET_VERSION);
  app_.add_option("--config", config_, "File of settings")->option_text("FILE");
  app_.add_flag("--print-config", print_,
                "Print the settings in effect in the format of that file, and exit");
  AddSettings(app_, options_);
}

absl::Status Parser::AddFile(std::vector<std::string>& arguments) const {
  if (config_.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> file = ReadFile(config_, kMaxOperatorFileBytes);
  if (!file.ok())
    return absl::Status(file.status().code(), absl::StrCat("--config: ", file.status().message()));
  std::istringstream stream(*file);
  std::set<std::string> names;
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(text);
    if (line.empty() || line.front() == '#') continue;
    auto wrong = [&](auto... words) {
      return absl::InvalidArgumentError(absl::StrCat(config_, ":", number, ": ", words...));
    };
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos)
      return wrong("\"", line, "\" is neither NAME = VALUE nor a comment");
    const std::string name(absl::StripTrailingAsciiWhitespace(line.substr(0, equals)));
    const CLI::Option* option = app_.get_option_no_throw("--" + name);
    if (const auto removed = RemovedSettingError(name); removed.has_value()) return wrong(*removed);
    if (option == nullptr || !IsSetting(*option))
      return wrong("there is no setting \"", name, "\"; --print-config prints all of them");
    if (!names.insert(name).second) return wrong(name, " is set a second time");
    const absl::StatusOr<std::string> value = ParseValue(line.substr(equals + 1));
    if (!value.ok()) return wrong(name, " ", value.status().message());
    // CLI11 would take the next argument as the value of "--name=".
    if (!value->empty()) arguments.push_back(absl::StrCat("--", name, "=", *value));
  }
  return absl::OkStatus();
}

std::vector<Setting> Parser::Settings() const {
  std::vector<Setting> settings;
  for (const CLI::Option* option : app_.get_options()) {
    if (!IsSetting(*option)) continue;
    settings.push_back({option->get_group(), option->get_single_name(),
                        option->count() > 0 ? option->as<std::string>() : option->get_default_str(),
                        option->get_default_str(), option->get_description()});
  }
  return settings;
}

std::string Parser::PrintedConfig() const {
  std::string text;
  std::string group;
  for (const Setting& setting : Settings()) {
    if (group != setting.group)
      absl::StrAppend(&text, group.empty() ? "" : "\n", "# ", setting.group, "\n");
    group = setting.group;
    absl::StrAppend(&text, setting.name, " = \"", setting.value, "\"\n");
  }
  return text;
}

absl::Status Parser::AddEnvironment(const std::vector<std::string>& environment,
                                    std::vector<std::string>& arguments) {
  for (const std::string& variable : environment) {
    absl::string_view rest = variable;
    if (!absl::ConsumePrefix(&rest, kPrefix)) continue;
    const size_t equals = rest.find('=');
    const std::string name =
        absl::StrReplaceAll(absl::AsciiStrToLower(rest.substr(0, equals)), {{"_", "-"}});
    const std::string value(equals == absl::string_view::npos ? "" : rest.substr(equals + 1));
    const CLI::Option* option = app_.get_option_no_throw("--" + name);
    if (const auto removed = RemovedSettingError(name); removed.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the environment has ", variable.substr(0, variable.find('=')), ": ", *removed));
    }
    if (option == nullptr || (!IsSetting(*option) && name != "config")) {
      return absl::InvalidArgumentError(absl::StrCat("the environment has ",
                                                     variable.substr(0, variable.find('=')),
                                                     ", but there is no setting \"", name, "\""));
    }
    if (name == "config") {
      config_ = value;
    } else if (!value.empty()) {
      arguments.push_back(absl::StrCat("--", name, "=", value));
    }
  }
  return absl::OkStatus();
}

ParsedOptions Text(std::string text, int exit_status) {
  ParsedOptions parsed;
  parsed.text = std::move(text);
  parsed.exit_status = exit_status;
  return parsed;
}

ParsedOptions Wrong(const absl::Status& status) {
  return Text(absl::StrCat("linnet-server: ", status.message(),
                           "\nRun with --help for more information.\n"),
              kUsageError);
}

ParsedOptions Parser::Parse(int argc, const char* const* argv,
                            const std::vector<std::string>& environment) {
  std::vector<std::string> from_environment;
  if (absl::Status status = AddEnvironment(environment, from_environment); !status.ok())
    return Wrong(status);
  for (int i = 1; i < argc; ++i) {  // the file is read first, wherever the flag is
    absl::string_view flag = argv[i];
    if (flag == "--config" && i + 1 < argc) config_ = argv[i + 1];
    if (absl::ConsumePrefix(&flag, "--config=")) config_ = std::string(flag);
    if (!absl::ConsumePrefix(&flag, "--")) continue;
    if (const auto removed = RemovedSettingError(flag.substr(0, flag.find('=')));
        removed.has_value())
      return Wrong(absl::InvalidArgumentError(*removed));
  }
  std::vector<std::string> arguments;
  if (absl::Status status = AddFile(arguments); !status.ok()) return Wrong(status);
  // The last value of a setting wins.
  arguments.insert(arguments.end(), from_environment.begin(), from_environment.end());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects a vector in reverse order
  try {
    app_.parse(arguments);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app_.exit(error, out, err);
    return Text(status == 0 ? out.str() : err.str(), status == 0 ? 0 : kUsageError);
  }
  if (print_) return Text(PrintedConfig(), 0);
  if (absl::Status status = CompleteOptions(options_); !status.ok()) return Wrong(status);
  ParsedOptions parsed;
  parsed.options = options_;
  parsed.settings = Settings();
  parsed.run = true;
  return parsed;
}

}  // namespace

std::string Setting::environment() const {
  return absl::StrCat(kPrefix, absl::StrReplaceAll(absl::AsciiStrToUpper(name), {{"-", "_"}}));
}

ParsedOptions ParseOptions(int argc, const char* const* argv,
                           const std::vector<std::string>& environment) {
  return Parser().Parse(argc, argv, environment);
}

std::vector<std::string> ProcessEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

void LogSettings(const std::vector<Setting>& settings) {
  std::vector<LogField> fields;
  for (const Setting& setting : settings) fields.emplace_back(setting.name, setting.value);
  Log(LogLevel::kInfo, "options", fields);
}

}  // namespace linnet::server
