#include "client/cli/cli.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/bench.h"
#include "client/cli/cli_flags.h"
#include "client/cli/commands.h"
#include "client/cli/flags/completion.h"
#include "client/cli/flags/man_page.h"
#include "client/command/help.h"
#include "client/command/settings.h"
#include "client/library/client.h"

namespace linnet::client {
namespace {

// The name of the command that was parsed, for "try '… --help'".
std::string CommandName(const CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? "linnet" : "linnet " + named.front()->get_name();
}

// The footer of the main help. Set it last: a subcommand inherits the footer that is set when it is
// added.
std::string Footer() {
  std::string text =
      "Examples:\n"
      "  linnet translate --to de \"A dog runs.\"\n"
      "  linnet translate --to de --file large.en -o large.de\n"
      "  linnet summarize --file news.txt\n"
      "  linnet score --to de \"A dog runs.\" \"Ein Hund läuft.\"\n"
      "  linnet models --server translate.example:50051\n"
      "  linnet health --wait 2m\n"
      "\n"
      "Settings, in the environment and in the file (a line each: to = de) that\n"
      "LINNET_CONFIG names, else linnet/config in XDG_CONFIG_HOME or ~/.config. Flags\n"
      "override the environment, which overrides the file:\n";
  for (const SettingName& setting : SettingNames()) {
    std::string variable = absl::StrCat("LINNET_", absl::StrReplaceAll(setting.name, {{"-", "_"}}));
    absl::AsciiStrToUpper(&variable);
    absl::StrAppendFormat(&text, "  %-23s %-16s %s\n", variable, setting.name, setting.about);
  }
  return text +
         "\n"
         "Exit status: 0; 1 a text cannot be read or is not UTF-8, or output cannot be\n"
         "written; 2 wrong usage; 3 texts were refused and skipped (--on-error skip);\n"
         "64 + the gRPC code if a call fails, so 78 if the server cannot be reached.\n";
}

int Usage(const std::string& name, const std::string& message, const Environment& environment) {
  environment.err << name << ": " << message << "\ntry '" << name << " --help'\n";
  return kExitUsage;
}

int Print(const std::string& text, const Environment& environment) {
  environment.out << text;
  return environment.out.flush() ? kExitOk : FailToWrite(errno, environment);
}

// CLI11 would take an argument [a,b] for two values, [] for none and ++ for the end of a command. A
// NUL at its end, which no argument of a process has, keeps it whole.
std::string Protected(const std::string& argument) {
  const bool brackets = absl::StartsWith(argument, "[") && absl::EndsWith(argument, "]");
  return brackets || argument == "++" ? argument + '\0' : argument;
}

// Makes all options drop that NUL from their values.
void Unprotect(CLI::App* app) {
  for (CLI::App* command : app->get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      option->transform([](std::string value) {
        if (absl::EndsWith(value, absl::string_view("\0", 1))) value.pop_back();
        return value;
      });
    }
  }
}

int RunCommand(const Commands& commands, const Flags& flags, Client& client,
               const Environment& environment) {
  const std::stop_callback cancel(environment.stop, [&client] { client.Cancel(); });
  const TextOptions& texts = flags.texts;
  if (commands.translate->parsed()) return Translate(client, texts, flags.translate, environment);
  if (commands.summarize->parsed()) return Summarize(client, texts, flags.summarize, environment);
  if (commands.score->parsed()) return Score(client, texts, flags.score, environment);
  if (commands.detect->parsed()) return DetectLanguage(client, texts, environment);
  if (commands.bench->parsed()) return Bench(client, flags.bench, environment);
  if (commands.reload->parsed()) return Reload(client, flags.model, texts.form, environment);
  if (commands.health->parsed()) return Health(client, flags.service, environment);
  if (flags.model.empty()) return ListModels(client, texts.form, environment);
  return GetModel(client, flags.model, texts.form, environment);
}

// A timeout that the user sets, by the flag or by a setting, is that of files as well.
void SetTimeoutOfTexts(const CLI::App& app, Flags& flags) {
  for (const CLI::App* command : app.get_subcommands()) {
    const CLI::Option* timeout = command->get_option_no_throw("--timeout");
    if (timeout != nullptr && !timeout->empty()) flags.texts.call.timeout = flags.client.timeout;
  }
}

}  // namespace

int RunCli(const std::vector<std::string>& arguments, const Environment& environment) {
  const absl::StatusOr<Settings> settings = ReadSettings(environment.variables);
  if (!settings.ok()) {
    environment.err << "linnet: " << settings.status().message() << "\n";
    return kExitUsage;
  }
  Flags flags;
  // Set before parsing, so that --help shows the setting.
  if (const auto server = settings->find("server"); server != settings->end()) {
    flags.client.server = server->second;
  }

  CLI::App app("Translates and summarises with a Linnet server.", "linnet");
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());  // subcommands inherit it
  app.set_version_flag("--version", "linnet " + Version());
  const Commands commands = AddCommands(&app, &flags);
  Unprotect(&app);
  app.footer(Footer());

  absl::StatusOr<std::vector<std::string>> all = WithSettings(*settings, app, arguments);
  if (!all.ok()) {
    environment.err << "linnet: " << all.status().message() << "\n";
    return kExitUsage;
  }
  try {
    // CLI11 wants the arguments in reverse order.
    std::vector<std::string> reversed(all->size());
    std::transform(all->rbegin(), all->rend(), reversed.begin(), Protected);
    app.parse(std::move(reversed));
  } catch (const CLI::Success& help) {  // --help and --version
    return app.exit(help, environment.out, environment.err);
  } catch (const CLI::ParseError& error) {
    const std::string name = CommandName(app);
    // CLI11's message would not name the unknown command.
    const bool no_such_command =
        name == "linnet" && !arguments.empty() && !absl::StartsWith(arguments[0], "-");
    const std::string message =
        no_such_command ? absl::StrCat("no command \"", arguments[0], "\"") : error.what();
    return Usage(name, message, environment);
  }
  if (commands.completion->parsed()) return Print(CompletionScript(app, flags.shell), environment);
  if (commands.man_page->parsed()) return Print(ManPage(app), environment);

  SetTimeoutOfTexts(app, flags);
  absl::StatusOr<Client> client = Client::Create(flags.client);
  if (!client.ok()) {
    return Usage(CommandName(app), std::string(client.status().message()), environment);
  }
  return RunCommand(commands, flags, *client, environment);
}

}  // namespace linnet::client
