#include "client/commands.h"

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/text_source.h"

namespace linnet::client {
namespace {

// A request is large enough to fill a batch of the server and small enough to see progress; some
// are under way at once, so that the server need not wait for us between them.
constexpr size_t kTextsPerRequest = 64;
constexpr size_t kBytesPerRequest = 64 << 10;
constexpr size_t kRequestsUnderWay = 4;

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

// The two kinds of calls that carry texts.
struct Translating {
  using Request = v1::TranslateRequest;
  using Response = v1::TranslateResponse;
  static constexpr auto kCall = &Client::Translate;
  static auto& Answers(Response& response) { return *response.mutable_translations(); }
};
struct Summarizing {
  using Request = v1::SummarizeRequest;
  using Response = v1::SummarizeResponse;
  static constexpr auto kCall = &Client::Summarize;
  static auto& Answers(Response& response) { return *response.mutable_summaries(); }
};

// Reads texts, sends them in requests, and writes the answers in the order of the texts. What is
// blank is not sent.
template <typename Kind>
class Pump {
 public:
  using Request = typename Kind::Request;
  using Response = typename Kind::Response;

  Pump(Client& client, const TextOptions& options, Request prototype,
       const Environment& environment)
      : client_(client),
        form_(options.form),
        prototype_(std::move(prototype)),
        environment_(environment),
        source_(options.arguments, options.files, options.lines, environment.in) {}

  int Run() {
    absl::Status read;
    bool more = true;
    while (more) {
      Batch batch;
      more = Fill(&batch, &read);
      if (!batch.texts.empty()) Send(std::move(batch));
      const size_t keep = more && source_.ready() ? kRequestsUnderWay - 1 : 0;
      while (under_way_.size() > keep) {
        if (const int exit = AnswerFirst(); exit != kExitOk) return exit;
      }
    }
    if (environment_.stop.stop_requested()) {
      return Fail(absl::CancelledError("cancelled"), AnsweredNote(), environment_);
    }
    return read.ok() ? kExitOk : FailLocally(read, environment_);
  }

  // Nobody waits for what is under way after an error, and a future's end would.
  ~Pump() {
    if (!under_way_.empty()) client_.Cancel();
  }

 private:
  struct Batch {
    std::vector<Text> texts;
    std::vector<std::string> sent;  // names of those that are sent, in the order of the contents
    std::shared_ptr<const Request> request;          // shared with the thread that sends it
    std::future<absl::StatusOr<Response>> response;  // only if any was sent
  };

  // Adds texts until the batch is full or the next one is not there yet. False after the last text.
  bool Fill(Batch* batch, absl::Status* error) {
    size_t bytes = 0;
    do {
      absl::StatusOr<std::optional<Text>> text = source_.Next();
      if (!text.ok()) *error = text.status();
      if (!text.ok() || !text->has_value()) return false;
      bytes += (*text)->content.size();
      batch->texts.push_back(**std::move(text));
    } while (batch->texts.size() < kTextsPerRequest && bytes < kBytesPerRequest && source_.ready());
    return true;
  }

  void Send(Batch batch) {
    auto request = std::make_shared<Request>(prototype_);
    for (const Text& text : batch.texts) {
      if (IsBlank(text)) continue;
      request->add_contents(text.content);
      batch.sent.push_back(text.name);
    }
    batch.request = request;
    if (!batch.sent.empty()) {
      batch.response = std::async(std::launch::async, [this, request = batch.request] {
        return (client_.*Kind::kCall)(*request);
      });
    }
    under_way_.push_back(std::move(batch));
  }

  absl::StatusOr<Response> Await(Batch& batch) {
    if (!batch.response.valid()) return Response();
    absl::StatusOr<Response> response = batch.response.get();
    // A server that is busy even after the client's retries may be busy with us: once more, alone.
    if (absl::IsResourceExhausted(response.status()) && !under_way_.empty()) {
      for (const Batch& other : under_way_) {
        if (other.response.valid()) other.response.wait();
      }
      response = (client_.*Kind::kCall)(*batch.request);
    }
    return response;
  }

  int AnswerFirst() {
    Batch batch = std::move(under_way_.front());
    under_way_.pop_front();
    absl::StatusOr<Response> response = Await(batch);
    if (!response.ok()) {
      return Fail(response.status(),
                  absl::StrCat(PlaceNote(response.status(), batch.sent), AnsweredNote()),
                  environment_);
    }
    int next = 0;
    for (const Text& text : batch.texts) {
      if (IsBlank(text)) {
        PrintBlank(text);
        continue;
      }
      const auto& answer = Kind::Answers(*response)[next];
      PrintAnswer(text, *response, next++, form_, environment_.out);
      if (answer.finish_reason() == v1::FINISH_REASON_LENGTH) {
        environment_.err << "linnet: " << text.name
                         << ": the answer was ended by the limit on target tokens\n";
      }
      ++answered_;
    }
    return environment_.out.flush() ? kExitOk : FailToWrite(environment_);
  }

  void PrintBlank(const Text& text) {
    Response response;
    Kind::Answers(response).Add()->set_text(text.content);
    PrintAnswer(text, response, 0, form_, environment_.out);
  }

  // Which text an error speaks of, if it names one by its number in the request.
  std::string PlaceNote(const absl::Status& status, const std::vector<std::string>& sent) const {
    const std::string error = ErrorText(status);
    for (size_t i = 0; i < sent.size(); ++i) {
      const std::string field = absl::StrCat("contents[", i, "]");
      if (absl::StrContains(error, field)) return absl::StrCat("\n  ", field, " is ", sent[i]);
    }
    return "";
  }

  std::string AnsweredNote() const {
    if (answered_ == 0) return "";
    return absl::StrCat("\n  ", answered_, answered_ == 1 ? " text was" : " texts were",
                        " answered before");
  }

  Client& client_;
  const Form form_;
  const Request prototype_;
  const Environment& environment_;
  TextSource source_;
  std::deque<Batch> under_way_;
  int64_t answered_ = 0;
};

// The one source language of the models that fit. `what` is the task in words, `option` the flag
// that chooses.
absl::StatusOr<std::string> OnlyLanguage(Client& client, v1::Task task, const std::string& target,
                                         const std::string& what, const std::string& option) {
  absl::StatusOr<v1::ListModelsResponse> models = client.ListModels();
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

template <typename Kind>
int RunTexts(Client& client, const TextOptions& options, typename Kind::Request request,
             const Environment& environment) {
  if (environment.in_is_terminal && options.arguments.empty() && options.files.empty()) {
    environment.err << "linnet: reading from the terminal, Ctrl-D ends the text\n";
  }
  return Pump<Kind>(client, options, std::move(request), environment).Run();
}

}  // namespace

int Translate(Client& client, const TextOptions& options, v1::TranslateRequest request,
              const Environment& environment) {
  if (request.source_language_code().empty() && request.model().empty()) {
    const std::string& target = request.target_language_code();
    absl::StatusOr<std::string> language = OnlyLanguage(
        client, v1::TASK_TRANSLATE, target, absl::StrCat("translates to ", target), "--from");
    if (!language.ok()) return Fail(language.status(), "", environment);
    request.set_source_language_code(*language);
  }
  return RunTexts<Translating>(client, options, std::move(request), environment);
}

int Summarize(Client& client, const TextOptions& options, v1::SummarizeRequest request,
              const Environment& environment) {
  if (request.language_code().empty() && request.model().empty()) {
    absl::StatusOr<std::string> language =
        OnlyLanguage(client, v1::TASK_SUMMARIZE, "", "summarises", "--language");
    if (!language.ok()) return Fail(language.status(), "", environment);
    request.set_language_code(*language);
  }
  return RunTexts<Summarizing>(client, options, std::move(request), environment);
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
