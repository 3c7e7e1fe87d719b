#include "client/cli/commands.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/text_kinds.h"
#include "client/cli/text_pump.h"
#include "client/cli/text_stream.h"

namespace linnet::client {

int Fail(const absl::Status& status, const std::string& note, const Environment& environment) {
  environment.err << "linnet: " << ErrorText(status) << note << "\n";
  return kExitCode + static_cast<int>(status.code());
}

int FailLocally(const absl::Status& status, const Environment& environment) {
  environment.err << "linnet: " << status.message() << "\n";
  return kExitLocal;
}

int FailToWrite(const Environment& environment) {
  return FailLocally(absl::DataLossError("cannot write to standard output"), environment);
}

namespace {

// The one source language of the models that fit. `what` is the task in words, `option` the flag
// that chooses.
absl::StatusOr<std::string> OnlyLanguage(Client& client, const CallOptions& call, v1::Task task,
                                         const std::string& target, const std::string& what,
                                         const std::string& option) {
  absl::StatusOr<v1::ListModelsResponse> models = client.ListModels(call);
  if (!models.ok()) return models.status();
  std::set<std::string> fitting, served;
  for (const v1::Model& model : models->models()) {
    if (model.task() != task) continue;
    if (target.empty() || absl::EqualsIgnoreCase(model.target_language_code(), target)) {
      fitting.insert(model.source_language_code());
    }
    served.insert(task == v1::TASK_TRANSLATE ? absl::StrCat(model.source_language_code(), " to ",
                                                            model.target_language_code())
                                             : model.source_language_code());
  }
  if (fitting.size() == 1) return *fitting.begin();
  if (fitting.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no model here ", what, "; served: ",
        served.empty() ? std::string("nothing of the kind") : absl::StrJoin(served, ", ")));
  }
  return absl::InvalidArgumentError(absl::StrCat("several models here ", what, ": choose with ",
                                                 option, " one of ", absl::StrJoin(fitting, ", ")));
}

// Fills in the source language of a request that leaves it, and the model, open.
template <typename Request>
absl::Status SetSourceLanguage(Client& client, const CallOptions& call, Request& request) {
  if (!request.source_language_code().empty() || !request.model().empty()) return absl::OkStatus();
  const std::string& target = request.target_language_code();
  absl::StatusOr<std::string> language = OnlyLanguage(
      client, call, v1::TASK_TRANSLATE, target, absl::StrCat("translates to ", target), "--from");
  if (language.ok()) request.set_source_language_code(*language);
  return language.status();
}

void TellThatWeRead(const TextOptions& options, const Environment& environment) {
  if (environment.in_is_terminal && options.arguments.empty() && options.files.empty()) {
    environment.err << "linnet: reading from the terminal, Ctrl-D ends the text\n";
  }
}

template <typename Kind>
int RunTexts(Client& client, const TextOptions& options, typename Kind::Request request,
             const Environment& environment) {
  TellThatWeRead(options, environment);
  return Pump<Kind>(client, options, std::move(request), environment).Run();
}

// Lines are many: they go in batches, whoever watches.
template <typename Kind>
int RunOrStreamTexts(Client& client, const TextOptions& options, typename Kind::Request request,
                     const Environment& environment) {
  const bool plain = options.form == Form::kText && !options.lines && !request.word_scores() &&
                     request.options().n_best() == 0;
  if (!environment.out_is_terminal || !plain) {
    return RunTexts<Kind>(client, options, std::move(request), environment);
  }
  TellThatWeRead(options, environment);
  return StreamTexts<Kind>(client, options, request, environment);
}

}  // namespace

int Translate(Client& client, const TextOptions& options, v1::TranslateRequest request,
              const Environment& environment) {
  if (absl::Status status = SetSourceLanguage(client, options.call, request); !status.ok())
    return Fail(status, "", environment);
  return RunOrStreamTexts<Translating>(client, options, std::move(request), environment);
}

int Summarize(Client& client, const TextOptions& options, v1::SummarizeRequest request,
              const Environment& environment) {
  if (request.language_code().empty() && request.model().empty()) {
    absl::StatusOr<std::string> language =
        OnlyLanguage(client, options.call, v1::TASK_SUMMARIZE, "", "summarises", "--language");
    if (!language.ok()) return Fail(language.status(), "", environment);
    request.set_language_code(*language);
  }
  return RunOrStreamTexts<Summarizing>(client, options, std::move(request), environment);
}

int Score(Client& client, TextOptions options, v1::ScoreRequest request,
          const Environment& environment) {
  std::vector<std::string> pairs;
  for (size_t i = 1; i < options.arguments.size(); ++i) {
    pairs.push_back(absl::StrCat(options.arguments[0], "\t", options.arguments[i]));
  }
  options.arguments = std::move(pairs);
  options.first_argument = 2;  // behind the source
  options.lines = true;
  if (absl::Status status = SetSourceLanguage(client, options.call, request); !status.ok())
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
  return environment.out.flush() ? kExitOk : FailToWrite(environment);
}

int ListModels(Client& client, Form form, const Environment& environment) {
  absl::StatusOr<v1::ListModelsResponse> models = client.ListModels();
  if (!models.ok()) return Fail(models.status(), "", environment);
  PrintModels(*models, form, environment.out);
  return environment.out.flush() ? kExitOk : FailToWrite(environment);
}

int Health(Client& client, const std::string& service, const Environment& environment) {
  const absl::Status status = client.Health(service);
  if (!status.ok()) return Fail(status, "", environment);
  environment.out << "SERVING\n";
  return environment.out.flush() ? kExitOk : FailToWrite(environment);
}

}  // namespace linnet::client
