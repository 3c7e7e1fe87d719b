#include "client/cli.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/commands.h"
#include "client/duration_flag.h"

namespace linnet::client {
namespace {

// All that can be said on the command line. CLI11 writes into it.
struct Flags {
  ClientOptions client;
  TextOptions texts;
  v1::TranslateRequest translate;
  v1::SummarizeRequest summarize;
  std::string service;
};

void AddConnection(CLI::App* command, Flags* flags) {
  command->add_option("--server", flags->client.server, "the server, or LINNET_SERVER")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->group("Connection");
  const auto add = [command](const char* flag, absl::Duration* to, const char* about) {
    const auto set = [=](const std::string& text) { *to = ParseDuration(flag, text); };
    command->add_option_function<std::string>(flag, set, about)
        ->type_name("TIME")
        ->group("Connection");
  };
  add("--timeout", &flags->client.timeout, "for each call, its retries included [60s]");
  add("--wait", &flags->client.wait, "for a server that is just starting [0]");
}

void AddJson(CLI::App* command, Flags* flags, const char* description) {
  command->add_flag_callback(
      "--json", [flags] { flags->texts.form = Form::kJson; }, description);
}

void AddTexts(CLI::App* command, Flags* flags) {
  command
      ->add_option("text", flags->texts.arguments,
                   "each is answered on its own line; without any, standard input is read")
      ->type_name("");
  command
      ->add_option("--file", flags->texts.files,
                   "read this file instead, as one text; may be repeated, - is standard input")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_flag("--lines", flags->texts.lines,
                    "each line of the input is a text: line in, line out");
  command->final_callback([texts = &flags->texts] {
    if (texts->arguments.empty() || (texts->files.empty() && !texts->lines)) return;
    throw CLI::ValidationError("texts come as arguments, or by --file and --lines, not by both");
  });
  AddJson(command, flags, "write each answer as a line of JSON with scores, segments and timings");
}

void AddModel(CLI::App* command, std::string* model) {
  command->add_option("--model", *model, "a model by its name, see 'linnet models'")
      ->type_name("NAME");
}

// What CLI11 would call "Could not convert: --beam = five".
template <typename Value>
std::string Refusal(const std::string& text) {
  Value value;
  // CLI11 would take "-1" for the largest of all.
  const bool wrapped = std::is_unsigned_v<Value> && absl::StartsWith(text, "-");
  if (!wrapped && CLI::detail::lexical_cast(text, value)) return "";
  const char* wanted = "number";
  if (std::is_same_v<Value, bool>) wanted = "choice of true and false";
  if (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) wanted = "whole number";
  if (std::is_unsigned_v<Value> && !std::is_same_v<Value, bool>) wanted = "whole number from 0 on";
  return absl::StrCat("\"", text, "\" is no ", wanted);
}

// Flags of the search; `options` gives the message they go to, made when the first is set.
void AddDecoding(CLI::App* command, std::function<v1::DecodingOptions*()> options) {
  const auto add = [command](const char* name, const char* type, auto set, const char* about) {
    using Value = typename decltype(set)::argument_type;
    command->add_option_function<Value>(name, set, about)
        ->check(Refusal<Value>)
        ->type_name(type)
        ->group("Decoding");
  };
  using Int = std::function<void(int32_t)>;
  using Float = std::function<void(float)>;
  add("--beam", "N", Int([=](auto v) { options()->set_beam_size(v); }),
      "hypotheses kept at each step; 1 is greedy");
  add("--length-penalty", "X", Float([=](auto v) { options()->set_length_penalty(v); }),
      "exponent of the length in the score");
  add("--min-target-tokens", "N", Int([=](auto v) { options()->set_min_target_tokens(v); }),
      "shortest answer to a segment");
  add("--max-target-tokens", "N", Int([=](auto v) { options()->set_max_target_tokens(v); }),
      "longest answer to a segment");
  add("--n-best", "N", Int([=](auto v) { options()->set_n_best(v); }),
      "list the N best hypotheses of each segment with their scores");
  add("--no-repeat-ngram-size", "N", Int([=](auto v) { options()->set_no_repeat_ngram_size(v); }),
      "no N tokens in a row occur twice; 0 forbids nothing");
  add("--temperature", "X", Float([=](auto v) { options()->set_temperature(v); }),
      "divides the logits");
  add("--top-k", "N", Int([=](auto v) { options()->set_top_k(v); }),
      "draw from the N most probable tokens; 0 is all of them");
  add("--top-p", "X", Float([=](auto v) { options()->set_top_p(v); }),
      "draw from the fewest tokens that hold this share of the probability");
  add("--seed", "N", std::function<void(uint64_t)>([=](auto v) { options()->set_seed(v); }),
      "draw at random, with these draws; --n-best says how often, or --beam, to keep the best");
  add("--unknown-penalty", "X", Float([=](auto v) { options()->set_unknown_penalty(v); }),
      "subtracted from the score of the unknown token");
  add("--normalize-scores", "BOOL",
      std::function<void(bool)>([=](auto v) { options()->set_normalize_scores(v); }),
      "false: scores are plain sums");
}

struct Commands {
  CLI::App* translate;
  CLI::App* summarize;
  CLI::App* models;
  CLI::App* health;
};

Commands AddCommands(CLI::App* app, Flags* flags) {
  Commands commands;
  CLI::App* translate = app->add_subcommand("translate", "Translate texts");
  translate
      ->add_option("--to", *flags->translate.mutable_target_language_code(), "language to write")
      ->type_name("LANGUAGE")
      ->required();
  translate
      ->add_option("--from", *flags->translate.mutable_source_language_code(),
                   "language of the texts; may be left out where the models leave no choice")
      ->type_name("LANGUAGE");
  AddModel(translate, flags->translate.mutable_model());
  AddTexts(translate, flags);
  AddDecoding(translate, [flags] { return flags->translate.mutable_options(); });
  AddConnection(translate, flags);
  translate->footer(
      "Examples:\n"
      "  linnet translate --to de \"A dog runs.\"\n"
      "  linnet translate --to de --n-best 3 --beam 5 \"A dog runs.\"\n"
      "  linnet translate --to de --file letter.txt > brief.txt\n"
      "  linnet translate --to de --lines < sentences.en > sentences.de\n");
  commands.translate = translate;

  CLI::App* summarize = app->add_subcommand("summarize", "Summarise texts in a line each");
  summarize
      ->add_option("--language", *flags->summarize.mutable_language_code(),
                   "language of the texts; may be left out where the models leave no choice")
      ->type_name("LANGUAGE");
  AddModel(summarize, flags->summarize.mutable_model());
  AddTexts(summarize, flags);
  AddDecoding(summarize, [flags] { return flags->summarize.mutable_options(); });
  AddConnection(summarize, flags);
  summarize->footer(
      "Examples:\n"
      "  linnet summarize --file abstract.txt\n"
      "  linnet summarize --max-target-tokens 20 < abstract.txt\n");
  commands.summarize = summarize;

  commands.models = app->add_subcommand("models", "List the models that the server has");
  AddJson(commands.models, flags, "write each model as a line of JSON");
  AddConnection(commands.models, flags);

  commands.health = app->add_subcommand("health", "Ask whether the server takes requests");
  commands.health->add_option("service", flags->service,
                              "a service by its full name; without it, the server as a whole");
  AddConnection(commands.health, flags);
  return commands;
}

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
  if (commands.models->parsed()) return ListModels(*client, flags.texts.form, environment);
  return Health(*client, flags.service, environment);
}

}  // namespace linnet::client
