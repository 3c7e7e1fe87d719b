#include "client/cli/shell.h"

#include <sys/stat.h>

#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/batch_runner.h"
#include "client/cli/commands.h"
#include "client/cli/line_editor.h"
#include "client/cli/text/text_kinds.h"
#include "client/cli/text_stream.h"
#include "client/command/settings.h"

namespace linnet::client {
namespace {

const char kHelp[] =
    ":to LANGUAGE     translate to this language\n"
    ":from LANGUAGE   language of the lines; without one, the only one that fits\n"
    ":summarize       summarise instead\n"
    ":model NAME      use this model; without a name, the one that fits\n"
    ":beam N          hypotheses kept at each step; without N, the model's default\n"
    ":n-best N        list the N best hypotheses; 0 lists none\n"
    ":words           list the words of an answer with their confidence: on or off\n"
    ":alignments      list the words with their aligned source words: on or off\n"
    ":models          list the models of the server\n"
    ":help            this\n"
    ":quit            end the shell, as Ctrl-D does\n";

class LinesOfStream final : public LineReader {
 public:
  explicit LinesOfStream(std::istream& in) : in_(in) {}
  Got Read(const std::string&, std::string* line) override {
    return std::getline(in_, *line) ? Got::kLine : Got::kEnd;
  }

 private:
  std::istream& in_;
};

// The state of the shell: the request with its options, and the effect of each line.
class Session {
 public:
  Session(Client& client, v1::TranslateRequest request, const Environment& environment)
      : client_(client), request_(std::move(request)), environment_(environment) {}

  std::string Prompt() const {
    if (!request_.model().empty()) return request_.model() + "> ";
    if (summarizes()) return "summarize> ";
    const std::string& from = request_.source_language_code();
    return absl::StrCat(from.empty() ? "" : from + "-", request_.target_language_code(), "> ");
  }

  // Handles one line. Returns false if it ends the shell.
  bool Take(const std::string& typed) {
    const std::string line(absl::StripAsciiWhitespace(typed));
    if (line.empty()) return true;
    if (line[0] == ':') return Command(line);
    Answer(line);
    return true;
  }
  // True if the shell shall end, not only the current answer.
  bool ended() {
    if (!ended_ && Renewed().stop_requested()) {
      ended_ = true;
      exit_ = kExitCode + static_cast<int>(absl::StatusCode::kCancelled);
    }
    return ended_;
  }
  int exit() const { return exit_; }

 private:
  bool summarizes() const {
    return request_.target_language_code().empty() && request_.model().empty();
  }

  std::stop_token Renewed() const {
    return environment_.renew_stop ? environment_.renew_stop() : environment_.stop;
  }

  // The first failure is the shell's status, for scripts.
  void Note(int status) {
    if (exit_ == kExitOk) exit_ = status;
  }

  // Refuses a command.
  void PrintRefusal(const std::string& what) {
    environment_.err << what << std::endl;
    Note(kExitUsage);
  }

  void SetNumber(const std::string& word, const std::string& value) {
    int number = 0;
    v1::DecodingOptions& options = *request_.mutable_options();
    if (!value.empty() && (!absl::SimpleAtoi(value, &number) || number < 0)) {
      PrintRefusal(absl::StrCat(word, ": \"", value, "\" is no whole number"));
    } else if (word == ":beam" && number == 0) {
      options.clear_beam_size();
    } else if (word == ":beam") {
      options.set_beam_size(number);
    } else if (number == 0) {
      options.clear_n_best();
    } else {
      options.set_n_best(number);
    }
  }

  bool Command(const std::string& line) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    const std::string& word = words[0];
    const std::string value = words.size() > 1 ? words[1] : "";
    if (word == ":quit" || word == ":q") return false;
    if (word == ":to" && value.empty()) {
      PrintRefusal(":to needs a language");
    } else if (word == ":to") {
      request_.set_target_language_code(value);
      request_.clear_model();
    } else if (word == ":from") {
      request_.set_source_language_code(value);
    } else if (word == ":model") {
      request_.set_model(value);
      request_.clear_source_language_code();
    } else if (word == ":summarize") {
      request_.clear_target_language_code();
      request_.clear_source_language_code();
      request_.clear_model();
    } else if (word == ":beam" || word == ":n-best") {
      SetNumber(word, value);
    } else if (word == ":words") {
      request_.set_word_scores(!request_.word_scores());
    } else if (word == ":alignments") {
      request_.set_alignments(!request_.alignments());
    } else if (word == ":models") {
      Note(ListModels(client_, Form::kText, environment_));
    } else if (word == ":help") {
      environment_.out << kHelp << std::flush;
    } else {
      PrintRefusal(absl::StrCat("no command ", word, "; :help lists them"));
    }
    return true;
  }

  void Answer(const std::string& line) {
    const std::stop_token stop = Renewed();
    // Cancels the calls of this line only; the client stays usable.
    TextOptions options;
    options.input.arguments = {line};
    options.call.cancellation.emplace();
    const std::stop_callback cancel(stop, [&] { options.call.cancellation->Cancel(); });
    std::istringstream nothing;
    const Environment inner = {nothing,
                               environment_.out,
                               environment_.err,
                               environment_.variables,
                               false,
                               stop,
                               environment_.out_is_terminal};
    if (IsSummary(options)) {
      v1::SummarizeRequest request;
      request.set_language_code(request_.source_language_code());
      request.set_model(request_.model());
      *request.mutable_options() = request_.options();
      request.set_word_scores(request_.word_scores());
      request.set_alignments(request_.alignments());
      Note(Summarize(client_, options, request, inner));
    } else {
      Note(Translate(client_, options, request_, inner));
    }
  }

  // Asks the server for the task of a model that was named.
  bool IsSummary(const TextOptions& options) {
    if (request_.model().empty()) return summarizes();
    v1::GetModelRequest which;
    which.set_name(request_.model());
    const auto model = client_.GetModel(which, options.call);
    return model.ok() && model->model().task() == v1::TASK_SUMMARIZE;
  }

  Client& client_;
  v1::TranslateRequest request_;
  const Environment& environment_;
  bool ended_ = false;
  int exit_ = kExitOk;
};

// Creates the state directory and returns the path of linnet/history in it; empty without a home
// directory.
std::string HistoryFile(const Variables& variables) {
  const auto find = [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  std::string folder = find("XDG_STATE_HOME");
  if (folder.empty() && find("HOME").empty()) return "";
  if (folder.empty()) folder = find("HOME") + "/.local/state";
  folder += "/linnet";
  for (size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    mkdir(folder.substr(0, slash).c_str(), 0700);
    if (slash == std::string::npos) return folder + "/history";
  }
}

}  // namespace

int RunShell(Client& client, const v1::TranslateRequest& request, LineReader& lines,
             const Environment& environment) {
  Session session(client, request, environment);
  bool more = true;
  while (more && !session.ended()) {
    std::string line;
    switch (lines.Read(session.Prompt(), &line)) {
      case LineReader::Got::kLine:
        more = !session.ended() && session.Take(line);
        break;
      case LineReader::Got::kInterrupt:
        break;
      case LineReader::Got::kEnd:
        more = false;
    }
  }
  // A user at a terminal has seen the errors; a script needs the exit status.
  return session.ended() || !environment.in_is_terminal ? session.exit() : kExitOk;
}

int Shell(Client& client, const v1::TranslateRequest& request, bool history,
          const Environment& environment) {
  if (!environment.in_is_terminal || !environment.out_is_terminal) {
    LinesOfStream lines(environment.in);
    const int exit = RunShell(client, request, lines, environment);
    if (!environment.in.bad() || environment.stop.stop_requested()) return exit;
    return FailLocally(absl::InvalidArgumentError("cannot read standard input"), environment);
  }
  LineEditor lines(history ? HistoryFile(environment.variables) : "", environment.stop_event);
  environment.err << "linnet: :help lists the commands, Ctrl-D ends" << std::endl;
  return RunShell(client, request, lines, environment);
}

}  // namespace linnet::client
