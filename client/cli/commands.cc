#include "client/cli/commands.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/batch_runner.h"
#include "client/cli/flags/flag_names.h"
#include "client/cli/print_models.h"
#include "client/cli/text/output_file.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/text_kinds.h"
#include "client/cli/text_stream.h"
#include "client/command/text/file_format.h"
#include "client/command/text/resume_record.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/status_macros.h"

namespace linnet::client {

bool WantsColour(const Environment& environment) {
  const auto has = [&environment](const char* name) {
    const auto found = environment.variables.find(name);
    return found != environment.variables.end() && !found->second.empty();
  };
  return !has("NO_COLOR");
}

int Fail(const absl::Status& status, const std::string& note, const Environment& environment) {
  environment.err << "linnet: " << InFlags(ErrorText(status)) << note << "\n";
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    environment.err << "  a token comes from --token-file or LINNET_TOKEN_FILE, a certificate from "
                       "--tls-cert and --tls-key\n";
  }
  return kExitCode + static_cast<int>(status.code());
}

int FailLocally(const absl::Status& status, const Environment& environment) {
  environment.err << "linnet: " << status.message() << "\n";
  return kExitLocal;
}

int FailToWrite(int cause, const Environment& environment) {
  if (cause == EPIPE) return kExitLocal;
  std::string message = "cannot write the output";
  if (cause != 0) absl::StrAppend(&message, ": ", std::strerror(cause));
  return FailLocally(absl::DataLossError(message), environment);
}

namespace {

bool WantsBars(const Environment& environment) {
  const auto terminal = environment.variables.find("TERM");
  return terminal == environment.variables.end() || terminal->second != "dumb";
}

// Files and standard input are documents of any length. Without a --timeout, their calls have the
// longest deadline that servers grant by default, since an answer that takes long is better than
// none, and the run waits while a server is busy.
TextOptions AsDocument(TextOptions options) {
  constexpr absl::Duration kTimeout = absl::Hours(1);
  constexpr absl::Duration kBusyTimeout = absl::Minutes(10);
  if (!options.input.arguments.empty()) return options;
  options.busy_timeout = options.call.timeout.value_or(kBusyTimeout);
  if (!options.call.timeout.has_value()) options.call.timeout = kTimeout;
  return options;
}

void PrintReadingHint(const TextOptions& options, const Environment& environment) {
  if (environment.in_is_terminal && !options.quiet && options.input.arguments.empty() &&
      options.input.files.empty()) {
    environment.err << "linnet: reading from the terminal, Ctrl-D ends the text\n";
  }
}

// Digest of the options that the answers depend on, without the texts.
template <typename Request>
uint64_t SettingsDigest(Request request, const TextOptions& options) {
  if constexpr (requires { request.clear_labels(); }) {
    request.clear_labels();
    request.clear_priority();
    request.clear_use_cache();
  }
  std::string bytes =
      absl::StrCat(static_cast<int>(options.form), " ", static_cast<int>(options.input.shape), " ",
                   options.input.text_key, " ", options.input.result_key, " ");
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  request.SerializeToCodedStream(&coded);
  coded.Trim();
  return Digest(kEmptyDigest, bytes);
}

// FAILED_PRECONDITION if a run from the start would overwrite an unfinished or longer output.
absl::Status CheckMayWrite(const TextOptions& options, const std::vector<std::string>& inputs) {
  const std::string& output = options.output;
  if (!options.resumable || options.force) return absl::OkStatus();
  const absl::StatusOr<WholeLines> lines = CountLines(output);
  if (ResumeRecord::Read(output).has_value() && lines.ok() && lines->lines > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", output, "\" has ", lines->lines,
                     " lines of an unfinished run: --resume continues after them, --force "
                     "overwrites them"));
  }
  return CheckOutputIsNotLonger(output, inputs);
}

// Finds the point where a run resumes, if the record of the earlier run allows it.
absl::StatusOr<ResumePoint> FindResumePoint(const TextOptions& options, uint64_t settings,
                                            int64_t lines) {
  ResumePoint point;
  point.texts = lines;
  if (lines == 0 || options.force) return point;
  const std::optional<ResumeRecord::Content> record = ResumeRecord::Read(options.output);
  if (!record.has_value()) {
    point.recorded = false;
    return point;
  }
  std::string why;
  if (record->settings != settings) why = "was begun with other languages, options or another form";
  if (record->done.texts > lines) {
    why = absl::StrCat("had ", record->done.texts, " lines and has ", lines, " now");
  }
  if (!why.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "\"", options.output, "\" ", why, ": --force continues after its lines all the same"));
  }
  point.known = record->done;
  return point;
}

// The same of an output whose texts have any number of lines: the record alone says where they end.
// Cuts off what was written after it.
absl::StatusOr<ResumePoint> FindParagraph(const TextOptions& options, uint64_t settings,
                                          WholeLines* kept) {
  ResumePoint point;
  if (kept->bytes == 0) return point;
  const std::optional<ResumeRecord::Content> record = ResumeRecord::Read(options.output);
  std::string why;
  if (!record.has_value() || record->done.bytes < 0) {
    why = "has no record beside it that says which paragraphs it answers";
  } else if (record->settings != settings) {
    why = "was begun with other languages, options or another form";
  } else if (record->done.bytes > kept->bytes) {
    why = absl::StrCat("had ", record->done.bytes, " bytes and has ", kept->bytes, " now");
  }
  if (!why.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", options.output, "\" ", why, ": run without --resume to begin again"));
  }
  kept->bytes = record->done.bytes;
  point.texts = record->done.texts;
  point.known = record->done;
  return point;
}

absl::StatusOr<ResumePoint> CheckOutput(const TextOptions& options, uint64_t settings,
                                        WholeLines* kept) {
  const std::vector<std::string> inputs =
      options.input.files.empty() ? std::vector<std::string>{"-"} : options.input.files;
  RETURN_IF_ERROR(CheckOutputIsNoInput(options.output, inputs));
  if (!options.resume) {
    RETURN_IF_ERROR(CheckMayWrite(options, inputs));
    return ResumePoint();
  }
  ASSIGN_OR_RETURN(*kept, CountLines(options.output));
  if (options.input.shape == Shape::kParagraphs) return FindParagraph(options, settings, kept);
  return FindResumePoint(options, settings, kept->lines);
}

// The members that PrintAnswer adds to an object beside that of the answer.
template <typename Kind>
std::vector<std::string> MoreKeys(const typename Kind::Request& request, Form form) {
  if constexpr (std::is_same_v<Kind, Detecting>) return {"reliable"};
  if constexpr (requires { request.options().n_best(); }) {
    const bool listed =
        request.word_scores() || request.alignments() || request.options().n_best() > 0;
    if (form == Form::kJsonLines && listed) return {"segments"};
  }
  return {};
}

// Answers all texts to standard output or to the output file.
template <typename Kind>
int RunTexts(Client& client, TextOptions options, typename Kind::Request request,
             const Environment& environment) {
  PrintReadingHint(options, environment);
  options = AsDocument(std::move(options));
  Input& input = options.input;
  if (input.result_key.empty()) input.result_key = Kind::kResultKey;
  input.more_keys = MoreKeys<Kind>(request, options.form);
  if (std::count(input.more_keys.begin(), input.more_keys.end(), input.result_key) > 0) {
    environment.err << "linnet: --answer-field: the answer has another member \""
                    << input.result_key << "\" already\n";
    return kExitUsage;
  }
  // A progress bar must not mix with answers on the same terminal.
  const bool shown = environment.err_is_terminal && !options.quiet && WantsBars(environment) &&
                     (!options.output.empty() || !environment.out_is_terminal);
  Progress progress(environment.err, shown, environment.columns, WantsColour(environment));
  if (options.output.empty()) {
    return BatchRunner<Kind>(client, options, std::move(request), environment, progress, nullptr)
        .Run();
  }
  const uint64_t settings = SettingsDigest(request, options);
  WholeLines kept;
  const absl::StatusOr<ResumePoint> point = CheckOutput(options, settings, &kept);
  if (!point.ok()) return FailLocally(point.status(), environment);
  std::ofstream file;
  const Environment to_file = {
      environment.in,
      file,
      environment.err,
      environment.variables,
      environment.in_is_terminal,
      environment.stop,
      false,
      environment.err_is_terminal,
      environment.columns,
      environment.in_bytes,
      environment.stop_event,
  };
  ResumeRecord record(options.output, settings);
  const bool recorded = options.resumable && IsFile(options.output);
  BatchRunner<Kind> runner(client, options, std::move(request), to_file, progress,
                           recorded ? &record : nullptr);
  absl::Status status = runner.Resume(*point);
  if (environment.stop.stop_requested()) {
    return Fail(absl::CancelledError("cancelled"), "", environment);
  }
  if (status.ok()) status = OpenOutput(options.output, kept.bytes, &file);
  if (!status.ok()) return FailLocally(status, environment);
  // Written before the first answer, so that the output has a record even if the run is killed.
  Checkpoint begin = point->known;
  begin.bytes = kept.bytes;
  if (recorded) record.Write(begin);
  return runner.Run();
}

// Streams the answers if a few texts go to a terminal; otherwise sends batches.
template <typename Kind>
int RunOrStreamTexts(Client& client, const TextOptions& options, typename Kind::Request request,
                     const Environment& environment) {
  const bool few = options.input.shape == Shape::kWhole || !options.input.arguments.empty();
  const bool plain = options.form == Form::kText && few && options.output.empty() &&
                     !options.skip_refused && !request.word_scores() && !request.alignments() &&
                     request.options().n_best() == 0;
  if (!environment.out_is_terminal || !plain) {
    return RunTexts<Kind>(client, options, std::move(request), environment);
  }
  PrintReadingHint(options, environment);
  return StreamTexts<Kind>(client, AsDocument(options), request, environment);
}

}  // namespace

int Translate(Client& client, const TextOptions& options, v1::TranslateRequest request,
              const Environment& environment) {
  const absl::Status plain =
      options.input.plain_text ? CheckFormats(options.input.files) : absl::OkStatus();
  if (!plain.ok()) {
    (void)FailLocally(plain, environment);
    return kExitUsage;
  }
  return RunOrStreamTexts<Translating>(client, options, std::move(request), environment);
}

int Summarize(Client& client, const TextOptions& options, v1::SummarizeRequest request,
              const Environment& environment) {
  return RunOrStreamTexts<Summarizing>(client, options, std::move(request), environment);
}

int Score(Client& client, TextOptions options, v1::ScoreRequest request,
          const Environment& environment) {
  std::vector<std::string> pairs;
  std::vector<std::string>& arguments = options.input.arguments;
  for (size_t i = 1; i < arguments.size(); ++i) {
    pairs.push_back(absl::StrCat(arguments[0], "\t", arguments[i]));
  }
  arguments = std::move(pairs);
  options.input.first_argument = 2;  // the first argument is the source
  options.input.shape = Shape::kLines;
  if (absl::Status status = SetLanguage(client, options.call, request); !status.ok())
    return Fail(status, "", environment);
  return RunTexts<Scoring>(client, options, std::move(request), environment);
}

int DetectLanguage(Client& client, const TextOptions& options, const Environment& environment) {
  return RunTexts<Detecting>(client, options, {}, environment);
}

int GetModel(Client& client, const std::string& name, Form form, const Environment& environment) {
  v1::GetModelRequest request;
  request.set_name(name);
  absl::StatusOr<v1::GetModelResponse> model = client.GetModel(request);
  if (!model.ok()) return Fail(model.status(), "", environment);
  PrintModel(*model, form, environment.out);
  return environment.out.flush() ? kExitOk : FailToWrite(errno, environment);
}

int ListModels(Client& client, Form form, const Environment& environment) {
  absl::StatusOr<v1::ListModelsResponse> models = client.ListModels();
  if (!models.ok()) return Fail(models.status(), "", environment);
  PrintModels(*models, form, environment.out);
  return environment.out.flush() ? kExitOk : FailToWrite(errno, environment);
}

int Reload(Client& client, const std::string& model, Form form, const Environment& environment) {
  v1::ReloadRequest request;
  request.set_model(model);
  const absl::StatusOr<v1::ReloadResponse> response = client.Reload(request);
  if (!response.ok()) return Fail(response.status(), "", environment);
  PrintReload(*response, form, environment.out);
  if (!environment.out.flush()) return FailToWrite(errno, environment);
  for (const v1::ModelReload& reload : response->models()) {
    if (reload.outcome() == v1::RELOAD_OUTCOME_FAILED) return kExitLocal;
  }
  return kExitOk;
}

int Health(Client& client, const std::string& service, const Environment& environment) {
  const absl::Status status = client.Health(service);
  if (!status.ok()) return Fail(status, "", environment);
  environment.out << "SERVING\n";
  return environment.out.flush() ? kExitOk : FailToWrite(errno, environment);
}

}  // namespace linnet::client
