#include "client/cli/cli.h"

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/cli_flags.h"
#include "client/cli/commands.h"
#include "client/library/client.h"

namespace linnet::client {
namespace {

// The command that was named, for "try '… --help'".
std::string NameOf(const CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? "linnet" : "linnet " + named.front()->get_name();
}

}  // namespace

int RunCli(const std::vector<std::string>& arguments, const Environment& environment) {
  Flags flags;
  if (!environment.server.empty()) flags.client.server = environment.server;

  CLI::App app("Translates and summarises with a Linnet server.", "linnet");
  app.require_subcommand(1);
  app.set_version_flag("--version", "linnet " + Version());
  const Commands commands = AddCommands(&app, &flags);
  // Set last: a command takes over the footer that is there when it is added.
  app.footer(
      "Examples:\n"
      "  linnet translate --to de \"A dog runs.\"\n"
      "  linnet summarize --file abstract.txt\n"
      "  linnet score --to de \"A dog runs.\" \"Ein Hund läuft.\"\n"
      "  linnet models --server translate.example:50051\n"
      "  linnet health --wait 2m\n"
      "\n"
      "Environment:\n"
      "  LINNET_SERVER  the server, where --server is not given\n"
      "\n"
      "Exit status: 0; 1 a text cannot be read or is not UTF-8, or output cannot be written;\n"
      "2 wrong usage; 64 + the gRPC code where a call fails, so 78 if the server is not there.\n");

  try {
    // CLI11 takes them from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help) {  // --help and --version
    return app.exit(help, environment.out, environment.err);
  } catch (const CLI::ParseError& error) {
    const std::string name = NameOf(app);
    // CLI11 would ask for a command without a word of the one that it does not know.
    const bool no_such_command =
        name == "linnet" && !arguments.empty() && !absl::StartsWith(arguments[0], "-");
    environment.err << name << ": "
                    << (no_such_command ? absl::StrCat("no command \"", arguments[0], "\"")
                                        : std::string(error.what()))
                    << "\ntry '" << name << " --help'\n";
    return kExitUsage;
  }

  absl::StatusOr<Client> client = Client::Create(flags.client);
  if (!client.ok()) {
    environment.err << NameOf(app) << ": " << client.status().message() << "\n";
    return kExitUsage;
  }
  const std::stop_callback cancel(environment.stop, [&client] { client->Cancel(); });
  if (commands.translate->parsed()) {
    return Translate(*client, flags.texts, flags.translate, environment);
  }
  if (commands.summarize->parsed()) {
    return Summarize(*client, flags.texts, flags.summarize, environment);
  }
  if (commands.score->parsed()) {
    return Score(*client, flags.texts, flags.score, environment);
  }
  if (commands.detect->parsed()) return DetectLanguage(*client, flags.texts, environment);
  if (commands.models->parsed() && !flags.model.empty()) {
    return GetModel(*client, flags.model, flags.texts.form, environment);
  }
  if (commands.models->parsed()) return ListModels(*client, flags.texts.form, environment);
  return Health(*client, flags.service, environment);
}

}  // namespace linnet::client
