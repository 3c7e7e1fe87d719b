#include "client/cli/cli_flags.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/text_flags.h"
#include "client/command/connection_flags.h"
#include "client/command/duration_flag.h"
#include "proto/decoding_flags.h"
#include "proto/plain_number.h"

namespace linnet::client {
namespace {

// The last value wins: settings are put before the typed arguments (settings.h).
CLI::Option* AddLanguage(CLI::App* command, const char* flag, std::string* language,
                         const char* about) {
  return command->add_option(flag, *language, about)->take_last()->type_name("LANGUAGE");
}

// True if answers take several lines.
template <typename Request>
bool Lists(const Request& request) {
  return request.word_scores() || request.alignments() || request.options().n_best() > 0;
}

// Adds a flag that may be repeated and whose values `add` gets.
void AddList(CLI::App* command, const char* flag, const char* type,
             std::function<void(const std::string&)> add, const char* about) {
  command
      ->add_option_function<std::vector<std::string>>(
          flag,
          [add = std::move(add)](const std::vector<std::string>& values) {
            for (const std::string& value : values) add(value);
          },
          about)
      ->type_name(type)
      ->allow_extra_args(false);
}

// Adds what a translation leaves as it is.
void AddProtection(CLI::App* command, v1::TranslateRequest* request) {
  AddList(
      command, "--protected-pattern", "REGEX",
      [request](const std::string& pattern) { request->add_protected_patterns(pattern); },
      "copy what this regular expression (RE2) matches; may be repeated");
  AddList(
      command, "--ignore-tag", "NAME",
      [request](const std::string& name) { request->mutable_markup()->add_ignore_tags(name); },
      "of markup, copy these elements with their content; may be repeated");
  AddList(
      command, "--splitting-tag", "NAME",
      [request](const std::string& name) { request->mutable_markup()->add_splitting_tags(name); },
      "of markup, these elements end sentences; may be repeated");
  AddList(
      command, "--non-splitting-tag", "NAME",
      [request](const std::string& name) {
        request->mutable_markup()->add_non_splitting_tags(name);
      },
      "of markup, these elements do not end sentences; may be repeated");
  command->add_flag_callback(
      "--attributes", [request] { request->mutable_markup()->set_attributes(true); },
      "of markup, translate the attributes title, alt, placeholder and aria-label");
}

// `request` is a SummarizeRequest or a ScoreRequest.
template <typename Request>
void AddStyle(CLI::App* command, Request* request) {
  AddChoice<v1::SummaryStyle>(
      command, "--style",
      {{"title", v1::SUMMARY_STYLE_TITLE},
       {"sentence", v1::SUMMARY_STYLE_SENTENCE},
       {"paragraph", v1::SUMMARY_STYLE_PARAGRAPH}},
      [request](v1::SummaryStyle value) { request->set_style(value); },
      "of summaries: a title, one sentence or a short paragraph; by default the model's first, see "
      "'linnet models'");
}

CLI::App* AddTranslate(CLI::App* app, Flags* flags) {
  CLI::App* translate = app->add_subcommand("translate", "Translate texts");
  AddLanguage(translate, "--to", flags->translate.mutable_target_language_code(),
              "language to write")
      ->required();
  AddLanguage(translate, "--from", flags->translate.mutable_source_language_code(),
              "language of the texts; not needed if only one fits the models or if the server can "
              "detect it, for each text");
  AddRequest(translate, flags, &flags->translate);
  translate->add_flag_callback(
      "--direct-only", [flags] { flags->translate.set_direct_only(true); },
      "fail if no model translates the pair directly, instead of going through a third language");
  AddTexts(translate, flags, true, [flags] { return Lists(flags->translate); });
  AddChoice<v1::LineBreaks>(
      translate, "--line-breaks",
      {{"keep", v1::LINE_BREAKS_KEEP}, {"join-paragraphs", v1::LINE_BREAKS_JOIN_PARAGRAPHS}},
      [flags](v1::LineBreaks value) { flags->translate.set_line_breaks(value); },
      "of text that was wrapped at a width, join the lines of each paragraph [keep]");
  translate
      ->add_option_function<std::string>(
          "--mime-type",
          [flags](const std::string& type) {
            flags->translate.set_mime_type(type);
            if (flags->has_markup()) flags->texts.input.plain_text = false;
          },
          "text/html or application/xml: the text is a fragment of markup, which keeps its tags; "
          "read "
          "as a whole unless --lines [text/plain]")
      ->type_name("TYPE");
  AddProtection(translate, &flags->translate);
  translate
      ->add_option("--target-prefix", *flags->translate.mutable_target_prefix(),
                   "what the translation of the only text begins with")
      ->type_name("TEXT");
  translate->preparse_callback([flags](size_t) { flags->texts.input.plain_text = true; });
  translate->add_flag_callback(
      "--as-text", [flags] { flags->texts.input.plain_text = false; },
      "translate a file of another format as if it were plain text, with its marks and keys");
  AddScores(translate, flags);
  AddGlossary(translate, &flags->translate);
  AddDecodingFlags(*translate, [flags] { return flags->translate.mutable_options(); });
  AddConnectionFlags(translate, &flags->client);
  translate->footer(
      "Examples:\n"
      "  linnet translate --to de \"A dog runs.\"\n"
      "  linnet translate --to de --n-best 3 --beam 5 \"A dog runs.\"\n"
      "  linnet translate --to de < letter.txt > brief.txt\n"
      "  linnet translate --to de --file large.en -o large.de\n"
      "  linnet translate --to de --file large.en -o large.de --resume\n"
      "  linnet translate --to de --line-breaks join-paragraphs --file mail.txt\n"
      "  linnet translate --to de --mime-type text/html --file page.html -o seite.html\n"
      "  linnet translate --to de --jsonl < tickets.jsonl > tickets.de.jsonl\n");
  return translate;
}

CLI::App* AddSummarize(CLI::App* app, Flags* flags) {
  CLI::App* summarize = app->add_subcommand("summarize", "Summarise texts in a line each");
  AddLanguage(summarize, "--language", flags->summarize.mutable_language_code(),
              "language of the texts; not needed if only one fits the models or if the server can "
              "detect it, for each text");
  AddRequest(summarize, flags, &flags->summarize);
  AddChoice<v1::LongInput>(
      summarize, "--long-input",
      {{"reject", v1::LONG_INPUT_REJECT},
       {"chunk", v1::LONG_INPUT_CHUNK},
       {"truncate", v1::LONG_INPUT_TRUNCATE}},
      [flags](v1::LongInput value) { flags->summarize.set_long_input(value); },
      "a text longer than the model's limit is refused, read in chunks, or cut at the limit");
  AddStyle(summarize, &flags->summarize);
  CLI::Option* words =
      summarize
          ->add_option_function<int>(
              "--summary-words",
              [flags](int words) { flags->summarize.mutable_length()->set_words(words); },
              "at most so many words, and at least three quarters of them")
          ->check(CheckPlainNumber)
          ->type_name("N");
  summarize
      ->add_option_function<int>(
          "--summary-sentences",
          [flags](int sentences) { flags->summarize.mutable_length()->set_sentences(sentences); },
          "so many sentences")
      ->check(CheckPlainNumber)
      ->type_name("N")
      ->excludes(words);
  AddTexts(summarize, flags, false, [flags] { return Lists(flags->summarize); });
  AddScores(summarize, flags);
  AddDecodingFlags(*summarize, [flags] { return flags->summarize.mutable_options(); });
  AddConnectionFlags(summarize, &flags->client);
  summarize->footer(
      "Examples:\n"
      "  linnet summarize --file news.txt\n"
      "  linnet summarize --style title --file abstract.txt\n"
      "  linnet summarize --max-target-tokens 20 < abstract.txt\n"
      "  linnet summarize --long-input chunk --file report.txt\n"
      "  linnet summarize --summary-sentences 2 --file article.txt\n"
      "  linnet summarize --jsonl --file abstracts.jsonl -o titles.jsonl\n");
  return summarize;
}

CLI::App* AddScore(CLI::App* app, Flags* flags) {
  CLI::App* score = app->add_subcommand("score", "Score given translations or summaries");
  score
      ->add_option("text", flags->texts.input.arguments,
                   "a source and its targets; without any, lines of standard input, each a source, "
                   "a tab and a target")
      ->type_name("");
  score
      ->add_option("--file", flags->texts.input.files,
                   "read the lines of this file; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  AddLanguage(score, "--to", flags->score.mutable_target_language_code(),
              "language of the targets; may be replaced by --model");
  AddLanguage(score, "--from", flags->score.mutable_source_language_code(),
              "language of the sources; not needed if only one fits the models or if the server "
              "can detect it");
  AddStyle(score, &flags->score);
  AddRequest(score, flags, &flags->score);
  AddOnError(score, flags);
  score->final_callback([flags] {
    const Input& texts = flags->texts.input;
    flags->texts.skip_refused = flags->skip_refused.value_or(false);
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
  AddConnectionFlags(score, &flags->client);
  score->footer(
      "Writes the score, a tab and the target. The score is the log-probability of its\n"
      "tokens, normalised by length, so that 0 is certainty.\n"
      "Examples:\n"
      "  linnet score --to de \"A dog runs.\" \"Ein Hund läuft.\" \"Eine Katze läuft.\"\n"
      "  paste sentences.en sentences.de | linnet score --to de\n");
  return score;
}

CLI::App* AddDetect(CLI::App* app, Flags* flags) {
  CLI::App* detect = app->add_subcommand("detect", "Detect the languages of texts");
  AddTexts(detect, flags, true, [] { return false; });
  detect
      ->add_option("--request-id", flags->texts.call.request_id,
                   "finds the calls in the server's log")
      ->type_name("ID");
  AddConnectionFlags(detect, &flags->client);
  detect->footer(
      "Writes the language, its share of the text from 0 to 1 and the text, with tabs\n"
      "between them; a language with a ? is a guess, und means undetermined.\n"
      "Examples:\n"
      "  linnet detect \"Der Hund läuft.\"\n"
      "  linnet detect --file mixed.txt | cut -f 1 | sort | uniq -c\n"
      "  linnet detect --document --file letter.txt\n");
  return detect;
}

CLI::App* AddModels(CLI::App* app, Flags* flags) {
  CLI::App* models = app->add_subcommand("models", "List the models that the server has");
  models->add_option("name", flags->model, "one model, with its limits and defaults")
      ->type_name("");
  AddJson(models, flags, "write each model as a line of JSON");
  AddConnectionFlags(models, &flags->client);
  models->footer(
      "SIZE is the number of parameters; TOKENS are the maximum of tokens in a segment\n"
      "of the source and of the target.\n"
      "Examples:\n"
      "  linnet models\n"
      "  linnet models en-de\n"
      "  linnet models --json | jq -r .name\n");
  return models;
}

CLI::App* AddHealth(CLI::App* app, Flags* flags) {
  CLI::App* health = app->add_subcommand("health", "Ask whether the server takes requests");
  health
      ->add_option("service", flags->service,
                   "a service by its full name; without it, the server as a whole")
      ->type_name("");
  AddConnectionFlags(health, &flags->client);
  health->footer(
      "The exit status is 0 if it does, 78 if it does not or cannot be reached, 68 if\n"
      "it does not answer within --timeout.\n"
      "Examples:\n"
      "  linnet health --wait 2m\n"
      "  linnet health linnet.v1.TextService\n"
      "  HEALTHCHECK CMD [\"linnet\", \"health\"]\n");
  return health;
}

CLI::App* AddReload(CLI::App* app, Flags* flags) {
  CLI::App* reload = app->add_subcommand("reload", "Make the server read its models again");
  reload->add_option("model", flags->model, "one model; without it, all of them")->type_name("");
  AddJson(reload, flags, "write the result for each model as a line of JSON");
  AddConnectionFlags(reload, &flags->client);
  reload->footer(
      "Set --server to the server's address for administrators (linnet-server\n"
      "--admin-listen), or to its usual one if the token has the right to administer.\n"
      "The former models serve until the new ones are ready. The exit status is 1 if a\n"
      "model could not be loaded.\n"
      "Examples:\n"
      "  linnet reload --server 127.0.0.1:50052\n"
      "  linnet reload en-de --server translate.example:50051 --token-file ops.token\n");
  return reload;
}

CLI::App* AddBench(CLI::App* app, Flags* flags) {
  CLI::App* bench = app->add_subcommand("bench", "Measure how fast the server answers");
  BenchOptions* options = &flags->bench;
  bench
      ->add_option("text", options->texts,
                   "texts to translate or summarise; built-in ones if left out")
      ->type_name("");
  AddLanguage(bench, "--to", &options->to, "language to write; without it, texts are summarised");
  AddLanguage(bench, "--from", &options->from, "language of the texts");
  bench->add_option("--model", options->model, "a model by its name")->type_name("NAME");
  bench->add_option("--concurrency", options->concurrency, "calls at once in the second part")
      ->check(CLI::Range(1, 1024))
      ->check(CheckPlainNumber)
      ->type_name("N")
      ->capture_default_str();
  bench
      ->add_option_function<std::string>(
          "--duration",
          [options](const std::string& text) {
            options->duration = ParseDuration("--duration", text);
            if (options->duration > absl::ZeroDuration()) return;
            throw CLI::ValidationError("--duration", "must be above 0");
          },
          "of each part [5s]")
      ->type_name("TIME");
  AddConnectionFlags(bench, &flags->client);
  bench->footer(
      "Measures sequential calls, then many at once. This is a quick look: linnet-load\n"
      "measures an open loop of arrivals, with percentiles to rely on.\n"
      "Examples:\n"
      "  linnet bench --to de\n"
      "  linnet bench --to de --concurrency 64 --duration 20s \"Where is the station?\"\n");
  return bench;
}

CLI::App* AddCompletion(CLI::App* app, Flags* flags) {
  CLI::App* completion =
      app->add_subcommand("completion", "Make a shell complete commands and flags");
  completion->add_option("shell", flags->shell, "bash, zsh or fish")
      ->type_name("")
      ->required()
      ->check([](const std::string& name) {
        const bool known = name == "bash" || name == "zsh" || name == "fish";
        return known ? std::string() : absl::StrCat("\"", name, "\" is none of bash, zsh, fish");
      });
  completion->footer(
      "Examples:\n"
      "  source <(linnet completion bash)\n"
      "  linnet completion bash > ~/.local/share/bash-completion/completions/linnet\n"
      "  linnet completion fish > ~/.config/fish/completions/linnet.fish\n");
  return completion;
}

}  // namespace

Commands AddCommands(CLI::App* app, Flags* flags) {
  Commands commands;
  commands.translate = AddTranslate(app, flags);
  commands.summarize = AddSummarize(app, flags);
  commands.score = AddScore(app, flags);
  commands.detect = AddDetect(app, flags);
  commands.models = AddModels(app, flags);
  commands.health = AddHealth(app, flags);
  commands.reload = AddReload(app, flags);
  commands.bench = AddBench(app, flags);
  commands.completion = AddCompletion(app, flags);
  commands.man_page = app->add_subcommand("man-page", "Write this as a man page")->group("");
  return commands;
}

}  // namespace linnet::client
