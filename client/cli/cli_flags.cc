#include "client/cli/cli_flags.h"

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/duration_flag.h"

namespace linnet::client {
namespace {

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

// A flag whose value is one of a few words.
template <typename Value>
void AddChoice(CLI::App* command, const char* flag,
               const std::vector<std::pair<std::string, Value>>& choices,
               std::function<void(Value)> set, const char* about) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  const auto choose = [=](const std::string& text) {
    for (const auto& [word, value] : choices) {
      if (word == text) return set(value);
    }
    throw CLI::ValidationError(
        flag, absl::StrCat("\"", text, "\" is none of ", absl::StrJoin(words, ", ")));
  };
  command->add_option_function<std::string>(flag, choose, about)
      ->type_name(absl::StrJoin(words, "|"));
}

// Flags that `translate`, `summarize` and `score` have in common.
template <typename Request>
void AddRequest(CLI::App* command, Flags* flags, Request* request) {
  command
      ->add_option("--model", *request->mutable_model(), "a model by its name, see 'linnet models'")
      ->type_name("NAME");
  AddChoice<v1::Priority>(
      command, "--priority",
      {{"batch", v1::PRIORITY_BATCH},
       {"normal", v1::PRIORITY_NORMAL},
       {"interactive", v1::PRIORITY_INTERACTIVE}},
      [request](v1::Priority value) { request->set_priority(value); },
      "beside the calls of others, to a busy server");
  const auto add_label = [request](const std::string& label) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos) {
      throw CLI::ValidationError("--label", "\"" + label + "\" is not KEY=VALUE");
    }
    (*request->mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  };
  command
      ->add_option_function<std::vector<std::string>>(
          "--label",
          [add_label](const std::vector<std::string>& labels) {
            for (const std::string& label : labels) add_label(label);
          },
          "goes into the server's log; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag_callback(
      "--word-scores", [request] { request->set_word_scores(true); },
      "list the words of each answer with their confidence");
  command
      ->add_option("--request-id", flags->texts.call.request_id,
                   "finds the calls in the server's log")
      ->type_name("ID");
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

CLI::App* AddScore(CLI::App* app, Flags* flags) {
  CLI::App* score = app->add_subcommand("score", "Score translations that are given");
  score
      ->add_option("text", flags->texts.arguments,
                   "a source and its targets; without any, lines of standard input, each a source, "
                   "a tab and a target")
      ->type_name("");
  score->add_option("--file", flags->texts.files, "read the lines of this file; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  score
      ->add_option("--to", *flags->score.mutable_target_language_code(),
                   "language of the targets; --model will do instead")
      ->type_name("LANGUAGE");
  score
      ->add_option("--from", *flags->score.mutable_source_language_code(),
                   "language of the sources; may be left out where the models leave no choice")
      ->type_name("LANGUAGE");
  AddRequest(score, flags, &flags->score);
  score->final_callback([flags] {
    const TextOptions& texts = flags->texts;
    if (flags->score.target_language_code().empty() && flags->score.model().empty()) {
      throw CLI::ValidationError("--to or --model is required");
    }
    if (texts.arguments.size() == 1) {
      throw CLI::ValidationError("a source without a target");
    }
    if (!texts.arguments.empty() && !texts.files.empty()) {
      throw CLI::ValidationError("texts come as arguments or by --file, not by both");
    }
  });
  AddJson(score, flags, "write each score as a line of JSON with those of its tokens");
  AddConnection(score, flags);
  score->footer(
      "Writes the score, a tab and the target: the log-probability of its tokens for its\n"
      "length, so that 0 is certainty.\n"
      "Examples:\n"
      "  linnet score --to de \"A dog runs.\" \"Ein Hund läuft.\" \"Eine Katze läuft.\"\n"
      "  paste sentences.en sentences.de | linnet score --to de\n");
  return score;
}

}  // namespace

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
  AddRequest(translate, flags, &flags->translate);
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
  AddRequest(summarize, flags, &flags->summarize);
  AddChoice<v1::LongInput>(
      summarize, "--long-input",
      {{"reject", v1::LONG_INPUT_REJECT},
       {"chunk", v1::LONG_INPUT_CHUNK},
       {"truncate", v1::LONG_INPUT_TRUNCATE}},
      [flags](v1::LongInput value) { flags->summarize.set_long_input(value); },
      "a text longer than the model reads is refused, read in chunks, or its start alone");
  AddTexts(summarize, flags);
  AddDecoding(summarize, [flags] { return flags->summarize.mutable_options(); });
  AddConnection(summarize, flags);
  summarize->footer(
      "Examples:\n"
      "  linnet summarize --file abstract.txt\n"
      "  linnet summarize --max-target-tokens 20 < abstract.txt\n"
      "  linnet summarize --long-input chunk --file report.txt\n");
  commands.summarize = summarize;

  commands.score = AddScore(app, flags);
  CLI::App* detect = app->add_subcommand("detect", "Say in which languages texts are written");
  AddTexts(detect, flags);
  detect
      ->add_option("--request-id", flags->texts.call.request_id,
                   "finds the calls in the server's log")
      ->type_name("ID");
  AddConnection(detect, flags);
  detect->footer(
      "Writes the language, its share of the text from 0 to 1 and the text, tabs between them; a\n"
      "language with a ? is a guess, und is none.\n"
      "Examples:\n"
      "  linnet detect \"Der Hund läuft.\"\n"
      "  linnet detect --lines < mixed.txt | cut -f 1 | sort | uniq -c\n");
  commands.detect = detect;

  commands.models = app->add_subcommand("models", "List the models that the server has");
  commands.models->add_option("name", flags->model, "one model, with its limits and defaults")
      ->type_name("");
  AddJson(commands.models, flags, "write each model as a line of JSON");
  AddConnection(commands.models, flags);

  commands.health = app->add_subcommand("health", "Ask whether the server takes requests");
  commands.health->add_option("service", flags->service,
                              "a service by its full name; without it, the server as a whole");
  AddConnection(commands.health, flags);
  return commands;
}

}  // namespace linnet::client
