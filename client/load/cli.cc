#include "client/load/cli.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/cli.h"
#include "client/cli/duration_flag.h"
#include "client/library/client.h"
#include "client/load/report.h"
#include "client/load/run.h"
#include "client/load/texts.h"

namespace linnet::client {
namespace {

constexpr int kMadeUpSentences = 1000;
constexpr absl::Duration kUnlimited = absl::Hours(24);

// All that can be said on the command line. CLI11 writes into it.
struct Flags {
  ClientOptions client;
  int channels = 1;
  std::optional<double> rate;
  std::string arrivals = "poisson";
  std::optional<int> concurrency;
  int max_in_flight = 256;
  std::optional<int64_t> calls;
  std::optional<absl::Duration> duration;
  std::optional<absl::Duration> objective;
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration drain = absl::Seconds(30);
  uint64_t seed = 1;
  std::string file;
  std::vector<int> words = {3, 25};
  int texts = 1;
  std::string task = "translate";
  v1::TranslateRequest translate;
  v1::SummarizeRequest summarize;
  std::string model;
  std::optional<int> beam;
  bool json = false;
};

void AddLoad(CLI::App* app, Flags* flags) {
  const auto add_duration = [app](const char* flag, auto* to, const char* about) {
    const auto set = [=](const std::string& text) {
      const absl::Duration value = ParseDuration(flag, text);
      if (value < absl::ZeroDuration() || value > kUnlimited) {
        throw CLI::ValidationError(flag, "\"" + text + "\" is not between 0 and 24h");
      }
      *to = value;
    };
    app->add_option_function<std::string>(flag, set, about)->type_name("TIME")->group("Load");
  };
  CLI::Option* rate =
      app->add_option("--rate", flags->rate, "open loop: calls a second, whatever comes back")
          ->check(CLI::Range(1e-3, 1e6));
  app->add_option("--concurrency", flags->concurrency,
                  "closed loop: calls in flight, each followed by the next")
      ->check(CLI::Range(1, 10000))
      ->excludes(rate);
  app->add_option("--arrivals", flags->arrivals, "of the open loop: poisson or constant")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str()
      ->needs(rate);
  app->add_option("--max-in-flight", flags->max_in_flight,
                  "of the open loop; later calls wait, and are measured from their time")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->needs(rate);
  app->add_option("--calls", flags->calls, "end after so many, those of the warm-up counted")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
  for (const char* flag : {"--rate", "--concurrency", "--arrivals", "--max-in-flight", "--calls"}) {
    app->get_option(flag)->group("Load");
  }
  add_duration("--duration", &flags->duration, "how long to measure [30s; with --calls no limit]");
  add_duration("--warmup", &flags->warm_up, "before that, calls are made and not measured [0]");
  add_duration("--drain", &flags->drain,
               "how long calls that were due are still sent at the end [30s]");
  add_duration("--objective", &flags->objective, "goodput counts answers within it [all]");
  app->add_option("--seed", flags->seed, "of arrivals and made-up texts")
      ->capture_default_str()
      ->group("Load");
}

void AddTexts(CLI::App* app, Flags* flags) {
  CLI::Option* file =
      app->add_option("--file", flags->file, "each line that is not blank is a text, in turn")
          ->check(CLI::ExistingFile)
          ->type_name("FILE");
  app->add_option("--words", flags->words,
                  "without a file: made-up sentences of so many words, all alike often [3 25]")
      ->expected(2)
      ->type_name("LEAST MOST")
      ->check(CLI::Range(1, 10000))
      ->excludes(file);
  app->add_option("--texts", flags->texts, "texts in a call")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--task", flags->task, "translate or summarize")
      ->check(CLI::IsMember({"translate", "summarize"}))
      ->capture_default_str();
  app->add_option("--to", *flags->translate.mutable_target_language_code(), "language to write")
      ->type_name("LANGUAGE");
  app->add_option("--from", *flags->translate.mutable_source_language_code(),
                  "language of the texts")
      ->type_name("LANGUAGE");
  app->add_option("--model", flags->model, "a model by its name, see 'linnet models'")
      ->type_name("NAME");
  app->add_option("--beam", flags->beam, "hypotheses kept at each step [the model's]")
      ->check(CLI::Range(1, 1024));
  for (const char* flag :
       {"--file", "--words", "--texts", "--task", "--to", "--from", "--model", "--beam"}) {
    app->get_option(flag)->group("Texts");
  }
}

void AddConnection(CLI::App* app, Flags* flags) {
  app->add_option("--server", flags->client.server, "the server, or LINNET_SERVER")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--channels", flags->channels, "connections, used in turn by the callers")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  const auto add = [app](const char* flag, absl::Duration* to, const char* about) {
    const auto set = [=](const std::string& text) { *to = ParseDuration(flag, text); };
    app->add_option_function<std::string>(flag, set, about)->type_name("TIME");
  };
  add("--deadline", &flags->client.timeout, "of each call, from its sending [60s]");
  add("--wait", &flags->client.wait, "for a server that is just starting [0]");
  for (const char* flag : {"--server", "--channels", "--deadline", "--wait"}) {
    app->get_option(flag)->group("Connection");
  }
}

// What one flag alone cannot know.
void Check(const Flags& flags) {
  if (!flags.rate && !flags.concurrency) {
    throw CLI::ValidationError(
        "give --rate N for an open loop, or --concurrency N for a closed one");
  }
  if (flags.task == "translate" && flags.translate.target_language_code().empty() &&
      flags.model.empty()) {
    throw CLI::ValidationError("--to LANGUAGE is needed to translate");
  }
  if (flags.words[0] > flags.words[1]) {
    throw CLI::ValidationError(absl::StrFormat("--words %d %d: the most is below the least",
                                               flags.words[0], flags.words[1]));
  }
}

LoadPlan PlanOf(const Flags& flags) {
  LoadPlan plan;
  plan.open = flags.rate.has_value();
  plan.arrivals = flags.arrivals == "constant" ? ArrivalKind::kConstant : ArrivalKind::kPoisson;
  plan.calls_per_second = flags.rate.value_or(1);
  plan.callers = plan.open ? flags.max_in_flight : *flags.concurrency;
  plan.warm_up = flags.warm_up;
  plan.duration = flags.duration.value_or(flags.calls ? kUnlimited : absl::Seconds(30));
  if (flags.calls) plan.most_calls = *flags.calls;
  plan.drain = flags.drain;
  plan.seed = flags.seed;
  return plan;
}

template <typename Answers>
CallOutcome Answered(const Answers& answers) {
  CallOutcome outcome;
  for (const auto& answer : answers) {
    outcome.source_tokens += answer.usage().source_tokens();
    outcome.target_tokens += answer.usage().target_tokens();
  }
  return outcome;
}

// Makes the calls: number `index` sends the texts index * texts, and on, of a ring.
class Caller {
 public:
  Caller(const Flags& flags, std::vector<std::string> sentences, std::vector<Client>& clients)
      : flags_(flags), sentences_(std::move(sentences)), clients_(clients) {}

  CallOutcome operator()(int64_t index, int caller) const {
    Client& client = clients_[caller % clients_.size()];
    if (flags_.task == "summarize") {
      v1::SummarizeRequest request = flags_.summarize;
      Fill(request, index);
      const absl::StatusOr<v1::SummarizeResponse> response = client.Summarize(request);
      return response.ok() ? Answered(response->summaries()) : CallOutcome{response.status()};
    }
    v1::TranslateRequest request = flags_.translate;
    Fill(request, index);
    const absl::StatusOr<v1::TranslateResponse> response = client.Translate(request);
    return response.ok() ? Answered(response->translations()) : CallOutcome{response.status()};
  }

 private:
  template <typename Request>
  void Fill(Request& request, int64_t index) const {
    for (int64_t text = 0; text < flags_.texts; ++text) {
      request.add_contents(sentences_[(index * flags_.texts + text) % sentences_.size()]);
    }
    request.set_model(flags_.model);
    if (flags_.beam) request.mutable_options()->set_beam_size(*flags_.beam);
  }

  const Flags& flags_;
  const std::vector<std::string> sentences_;
  std::vector<Client>& clients_;
};

// Connected clients, so that the first calls do not pay for it.
absl::StatusOr<std::vector<Client>> Connect(const Flags& flags) {
  std::vector<Client> clients;
  for (int channel = 0; channel < flags.channels; ++channel) {
    absl::StatusOr<Client> client = Client::Create(flags.client);
    if (!client.ok()) return client.status();
    if (absl::Status status = client->Health(); !status.ok()) return status;
    clients.push_back(*std::move(client));
  }
  return clients;
}

LoadSettings SettingsOf(const Flags& flags, size_t sentences) {
  LoadSettings settings;
  settings.server = flags.client.server;
  settings.task = flags.task;
  if (!flags.translate.target_language_code().empty()) {
    absl::StrAppend(&settings.task, " to ", flags.translate.target_language_code());
  }
  if (!flags.model.empty()) absl::StrAppend(&settings.task, " with ", flags.model);
  settings.texts = flags.file.empty() ? absl::StrFormat("made-up texts of %d to %d words",
                                                        flags.words[0], flags.words[1])
                                      : absl::StrCat(sentences, " texts of ", flags.file);
  settings.texts_per_call = flags.texts;
  settings.channels = flags.channels;
  settings.deadline = flags.client.timeout;
  settings.objective = flags.objective;
  settings.plan = PlanOf(flags);
  return settings;
}

int Load(const Flags& flags, const LoadEnvironment& environment) {
  const auto fail = [&](int exit, const absl::Status& status) {
    environment.err << "linnet-load: " << ErrorText(status) << "\n";
    return exit;
  };
  std::vector<std::string> sentences;
  if (flags.file.empty()) {
    sentences = MadeUpSentences(kMadeUpSentences, flags.words[0], flags.words[1], flags.seed);
  } else {
    auto read = ReadSentences(flags.file);
    if (!read.ok()) return fail(kExitUsage, read.status());
    sentences = *std::move(read);
  }
  absl::StatusOr<std::vector<Client>> clients = Connect(flags);
  if (!clients.ok()) {
    const bool usage = absl::IsInvalidArgument(clients.status());
    return fail(usage ? kExitUsage : kExitCode + clients.status().raw_code(), clients.status());
  }
  const std::stop_callback cancel(environment.stop, [&clients] {
    for (Client& client : *clients) client.Cancel();
  });
  const LoadSettings settings = SettingsOf(flags, sentences.size());
  const Caller caller(flags, std::move(sentences), *clients);
  const LoadResult result = RunLoad(settings.plan, caller, environment.stop);
  environment.out << (flags.json ? LoadReportJson(settings, result) + "\n"
                                 : LoadReport(settings, result))
                  << std::flush;
  if (!environment.out) return kExitLocal;
  const bool any_answer = result.record.by_status().count(absl::StatusCode::kOk) > 0;
  return any_answer ? kExitOk : kExitLocal;
}

}  // namespace

int RunLoadCli(const std::vector<std::string>& arguments, const LoadEnvironment& environment) {
  Flags flags;
  flags.client.retry.max_attempts = 1;  // what a server refuses is to be seen
  if (!environment.server.empty()) flags.client.server = environment.server;
  CLI::App app(
      "Measures a Linnet server under load: how long calls take, and how many it answers.\n"
      "An open loop measures each call from the time at which it should have been sent, so that a\n"
      "server that stalls is seen as its users would see it.",
      "linnet-load");
  app.set_version_flag("--version", "linnet-load " + Version());
  AddLoad(&app, &flags);
  AddTexts(&app, &flags);
  AddConnection(&app, &flags);
  app.add_flag("--json", flags.json, "report as one line of JSON");
  app.footer(
      "Examples:\n"
      "  linnet-load --from en --to de --rate 20 --duration 1m --warmup 5s --objective 500ms\n"
      "  linnet-load --from en --to de --concurrency 32 --file sentences.en --channels 4\n"
      "  linnet-load --task summarize --rate 2 --arrivals constant --words 50 200 --json\n"
      "\n"
      "SIGINT ends the run with a report of what was measured until then.\n"
      "Exit status: 0; 1 no call was answered; 2 wrong usage; 64 + the gRPC code if the server\n"
      "is not there.\n");
  try {
    // CLI11 takes them from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    Check(flags);
  } catch (const CLI::Success& help) {  // --help and --version
    return app.exit(help, environment.out, environment.err);
  } catch (const CLI::ParseError& error) {
    environment.err << "linnet-load: " << error.what() << "\ntry 'linnet-load --help'\n";
    return kExitUsage;
  }
  return Load(flags, environment);
}

}  // namespace linnet::client
