#include "client/cli/text_flags.h"

#include <algorithm>

#include "client/cli/text/glossary_file.h"

namespace linnet::client {
void AddJson(CLI::App* command, Flags* flags, const char* description) {
  command->add_flag_callback(
      "--json",
      [flags] {
        flags->texts.form = Form::kJson;
        flags->json = true;
      },
      description);
}

void AddOnError(CLI::App* command, Flags* flags) {
  command->add_flag("-q,--quiet", flags->texts.quiet,
                    "write errors only: no progress, and no notes about single texts");
  AddChoice<bool>(
      command, "--on-error", {{"stop", false}, {"skip", true}},
      [flags](bool skip) { flags->skip_refused = skip; },
      "a refused text ends the run, or its answer stays empty (in JSON: an \"error\") and the exit "
      "status is 3 [stop, with --jsonl skip]");
}

void AddTexts(CLI::App* command, Flags* flags, bool lines, std::function<bool()> lists) {
  Input* input = &flags->texts.input;
  command
      ->add_option("text", input->arguments,
                   "each is answered on its own line; without any, standard input is read")
      ->type_name("");
  command
      ->add_option("--file", input->files,
                   "read this file instead; may be repeated, - is standard input")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto* output =
      command->add_option("-o,--output", flags->texts.output, "write the answers to this file")
          ->type_name("FILE");
  auto* by_line = command->add_flag(
      "--lines", flags->lines,
      lines ? "each line of the input is a text: line in, line out (this is the default)"
            : "each line of the input is a text: line in, line out");
  auto* whole = command->add_flag("--document", flags->document,
                                  lines ? "each file is one text, read before it is answered"
                                        : "each file is one text (this is the default)");
  auto* objects = command->add_flag("--jsonl", flags->json_lines,
                                    "each line of the input is a JSON object whose \"text\" is the "
                                    "text; the answer is added to it");
  whole->excludes(by_line);
  objects->excludes(by_line)->excludes(whole);
  command
      ->add_flag("--resume", flags->texts.resume,
                 "continue after the last whole line of the output file")
      ->needs(output);
  command
      ->add_flag("--force", flags->texts.force,
                 "overwrite the output of an unfinished run or one with more lines than the input, "
                 "or --resume one without a record of its input")
      ->needs(output);
  AddOnError(command, flags);
  AddJson(
      command, flags,
      "write each answer as a line of JSON with scores, segments and timings; with --jsonl as an "
      "object in the object");
  command
      ->add_option("--text-field", input->text_key,
                   "with --jsonl: the member that is the text [text]")
      ->type_name("NAME")
      ->needs(objects);
  command
      ->add_option("--answer-field", input->result_key,
                   "with --jsonl: the member that the answer becomes")
      ->type_name("NAME")
      ->needs(objects);
  command->final_callback([flags, input, lines, lists] {
    const bool read = !input->files.empty() || flags->lines || flags->document || flags->json_lines;
    if (!input->arguments.empty() && (read || flags->texts.resume)) {
      throw CLI::ValidationError(
          "texts come as arguments, or by --file and --lines and the like, not by both");
    }
    if (flags->json_lines) {
      input->shape = Shape::kJsonLines;
      flags->texts.form = flags->json ? Form::kJsonLinesWhole : Form::kJsonLines;
    } else if (flags->lines || (lines && !flags->document && !flags->reads_whole())) {
      input->shape = flags->joins_lines() ? Shape::kParagraphs : Shape::kLines;
    }
    if (flags->lines && flags->joins_lines()) {
      throw CLI::ValidationError(
          "--lines answers each line alone, --line-breaks join-paragraphs joins them: leave one "
          "out");
    }
    const size_t texts = std::max(input->arguments.size(), input->files.size());
    if (!flags->translate.target_prefix().empty() && (input->shape != Shape::kWhole || texts > 1)) {
      throw CLI::ValidationError(
          "--target-prefix begins the translation of one text: give one, without --lines or "
          "--jsonl");
    }
    input->plain_text &= !flags->json_lines;
    flags->texts.skip_refused = flags->skip_refused.value_or(flags->json_lines);
    const bool one_line = !lists() || IsJson(flags->texts.form);
    flags->texts.resumable = !flags->texts.output.empty() && input->arguments.empty() &&
                             input->shape != Shape::kWhole && one_line;
    if (!flags->texts.resume) return;
    if (input->shape == Shape::kWhole) {
      throw CLI::ValidationError("--resume counts lines: --lines or --jsonl is required");
    }
    if (!one_line) {
      throw CLI::ValidationError(
          "--resume counts lines, and these answers take several: --json or --jsonl is required");
    }
  });
}

void AddGlossary(CLI::App* command, v1::TranslateRequest* request) {
  command
      ->add_option_function<std::string>(
          "--glossary",
          [request](const std::string& file) {
            absl::Status status = ReadGlossary(file, request->mutable_glossary());
            if (!status.ok()) {
              throw CLI::ValidationError("--glossary", std::string(status.message()));
            }
          },
          "each line of this file is a term, a tab and its translation; without a tab it is kept")
      ->type_name("FILE");
}

void AddScores(CLI::App* command, Flags* flags) {
  command
      ->add_flag_callback(
          "--scores", [flags] { flags->texts.form = Form::kScored; },
          "write the score of its weakest segment and a tab before each answer")
      ->excludes(command->get_option("--json"))
      ->excludes(command->get_option("--jsonl"));
}

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
      "priority of the calls on a busy server");
  AddChoice<bool>(
      command, "--use-cache", {{"true", true}, {"false", false}},
      [request](bool value) { request->set_use_cache(value); },
      "whether the server may keep the answers and answer from its cache; by default a search may");
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
          "written to the server's log; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag_callback(
      "--word-scores", [request] { request->set_word_scores(true); },
      "list the words of each answer with their confidence");
  command->add_flag_callback(
      "--alignments", [request] { request->set_alignments(true); },
      "list the words of each answer with their aligned words of the source");
  command
      ->add_option("--request-id", flags->texts.call.request_id,
                   "finds the calls in the server's log")
      ->type_name("ID");
}
template void AddRequest(CLI::App*, Flags*, v1::TranslateRequest*);
template void AddRequest(CLI::App*, Flags*, v1::SummarizeRequest*);
template void AddRequest(CLI::App*, Flags*, v1::ScoreRequest*);

}  // namespace linnet::client
