#include "client/load/flags.h"

#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/command/connection_flags.h"
#include "client/command/duration_flag.h"
#include "client/library/channel.h"
#include "client/load/comparison.h"
#include "client/load/texts.h"
#include "proto/plain_number.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

constexpr absl::Duration kUnlimited = absl::Hours(24);

// Puts the flags that `add` adds under a heading of the help.
template <typename Add>
void Group(CLI::App* app, const char* heading, Add add) {
  const size_t before = app->get_options().size();
  add();
  const std::vector<CLI::Option*> options = app->get_options();
  for (size_t i = before; i < options.size(); ++i) options[i]->group(heading);
}

template <typename To>
CLI::Option* AddDuration(CLI::App* app, const char* flag, To* to, const char* about) {
  const auto set = [=](const std::string& text) {
    const absl::Duration value = ParseDuration(flag, text);
    if (value < absl::ZeroDuration() || value > kUnlimited) {
      throw CLI::ValidationError(flag, "\"" + text + "\" is not between 0 and 24h");
    }
    *to = value;
  };
  return app->add_option_function<std::string>(flag, set, about)->type_name("TIME");
}

// Adds a flag with one or several numbers from min to max.
template <typename To, typename Bound>
CLI::Option* AddNumber(CLI::App* app, const char* flag, To& to, const char* about, Bound min,
                       Bound max) {
  return app->add_option(flag, to, about)->check(CLI::Range(min, max))->check(CheckPlainNumber);
}

// "200ms" or "p99=200ms"
Objective ParseObjective(const std::string& text) {
  Objective objective;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "p")) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(rest, absl::MaxSplits('=', 1));
    double percent = 0;
    if (!absl::SimpleAtod(halves.first, &percent) || !(percent > 0) || percent >= 100) {
      throw CLI::ValidationError("--objective",
                                 "\"" + text + "\" is no objective like p99=200ms or 200ms");
    }
    objective.percent = percent;
    rest = halves.second;
  }
  objective.limit = ParseDuration("--objective", std::string(rest));
  if (objective.limit <= absl::ZeroDuration() || objective.limit > kUnlimited) {
    throw CLI::ValidationError("--objective", "\"" + text + "\" is not above 0 and at most 24h");
  }
  return objective;
}

void AddLoops(CLI::App* app, LoadFlags* flags) {
  CLI::Option* rate =
      AddNumber(app, "--rate", flags->rate,
                "open loop: calls per second, independent of the answers", 1e-3, 1e6);
  const auto set_schedule = [flags](const std::string& text) {
    absl::StatusOr<RateSchedule> schedule = RateSchedule::Parse(text);
    if (!schedule.ok()) {
      throw CLI::ValidationError("--schedule", std::string(schedule.status().message()));
    }
    flags->schedule = *std::move(schedule);
  };
  CLI::Option* schedule =
      app->add_option_function<std::string>("--schedule", set_schedule,
                                            "open loop at changing rates: steps RATE:TIME and "
                                            "ramps FROM..TO:TIME, separated by commas")
          ->type_name("PARTS")
          ->excludes(rate);
  CLI::Option* find = app->add_flag("--find-rate", flags->find_rate,
                                    "find the highest open-loop rate that meets the --objective, "
                                    "as p99=200ms: doubles the rate, then bisects")
                          ->excludes(rate)
                          ->excludes(schedule);
  AddNumber(app, "--rates", flags->rates, "range in which a rate is searched [1 10000]", 1e-3, 1e6)
      ->expected(2)
      ->type_name("MIN MAX")
      ->needs(find);
  AddNumber(app, "--precision", flags->precision, "of the found rate, as a share of it", 0.001, 1.0)
      ->capture_default_str()
      ->needs(find);
  CLI::Option* concurrency =
      AddNumber(app, "--concurrency", flags->concurrency,
                "closed loop: calls in flight, each followed by the next", 1, 10000)
          ->excludes(rate)
          ->excludes(schedule)
          ->excludes(find);
  app->add_option("--arrivals", flags->arrivals, "of an open loop")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str();
  AddNumber(app, "--max-in-flight", flags->max_in_flight,
            "of an open loop; further calls wait and are measured from their due time", 1, 10000)
      ->capture_default_str()
      ->excludes(concurrency);
  AddNumber(app, "--calls", flags->calls, "end after so many calls, the warm-up's included",
            int64_t{1}, std::numeric_limits<int64_t>::max())
      ->excludes(find);
  AddDuration(app, "--duration", &flags->duration,
              "how long to measure [30s, each rate of a search 10s; with "
              "--calls no limit]")
      ->excludes(schedule);
  AddDuration(app, "--warmup", &flags->warm_up,
              "time before the measurement in which calls are not counted [0]");
  AddDuration(app, "--drain", &flags->drain,
              "of an open loop: max time after the end in which due calls are still sent [30s]")
      ->excludes(concurrency);
  app->add_option_function<std::string>(
         "--objective",
         [flags](const std::string& text) { flags->objective = ParseObjective(text); },
         "goodput counts answers within TIME [all]; --find-rate needs NN, the percentage of calls "
         "that must be within it")
      ->type_name("[pNN=]TIME");
  app->add_option("--seed", flags->seed, "of arrivals, mixes and made-up texts")
      ->check([](const std::string& value) {  // CLI11 would read -1 as the largest number
        return absl::StartsWith(value, "-") ? absl::StrCat("Value ", value, " is below 0") : "";
      })
      ->check(CheckPlainNumber)
      ->capture_default_str();
}

void AddAbandonment(CLI::App* app, LoadFlags* flags) {
  const auto add = [app](const char* flag, double& to, const char* about) {
    AddNumber(app, flag, to, about, 0.0, 1.0)->type_name("SHARE");
  };
  add("--give-up", flags->abandonment.deadlines, "of calls whose deadline is --leave-after");
  add("--cancel", flags->abandonment.cancels, "of calls that are cancelled after --leave-after");
  add("--disconnect", flags->abandonment.disconnects,
      "of calls on a connection of their own that is cut after --leave-after");
  AddDuration(app, "--leave-after", &flags->abandonment.after,
              "how long the callers of --give-up, --cancel and --disconnect wait [100ms]");
}

void AddTexts(CLI::App* app, LoadFlags* flags) {
  CLI::Option* mix =
      app->add_option(
             "--mix", flags->mix,
             "kinds of calls, one JSON object per line: "
             R"({"weight": 3, "translate": {"targetLanguageCode": "de"}, "words": [3, 9]})")
          ->check(CLI::ExistingFile)
          ->type_name("FILE");
  CLI::Option* file = app->add_option("--file", flags->file,
                                      "send the lines of this file that are not blank, in turn")
                          ->check(CLI::ExistingFile)
                          ->type_name("FILE");
  AddNumber(app, "--words", flags->words,
            "without a file: made-up sentences of so many words, uniformly distributed [3 25]", 1,
            10000)
      ->expected(2)
      ->type_name("MIN MAX")
      ->excludes(file);
  AddNumber(app, "--texts", flags->texts, "texts per call", 1, 100000)->capture_default_str();
  app->add_option("--task", flags->task, "of the calls")
      ->check(CLI::IsMember({"translate", "summarize"}))
      ->capture_default_str()
      ->excludes(mix);
  app->add_option("--to", flags->to, "language to write")->type_name("LANGUAGE")->excludes(mix);
  app->add_option("--from", flags->from, "language of the texts")
      ->type_name("LANGUAGE")
      ->excludes(mix);
  app->add_option("--model", flags->model, "a model by its name, see 'linnet models'")
      ->type_name("NAME")
      ->excludes(mix);
  AddNumber(app, "--beam,--beam-size", flags->beam, "hypotheses kept at each step [the model's]", 1,
            1024)
      ->excludes(mix);
}

void AddConnection(CLI::App* app, LoadFlags* flags) {
  AddConnectionFlags(app, &flags->client);
  app->remove_option(app->get_option("--timeout"));  // replaced by --deadline: nothing is retried
  AddDuration(app, "--deadline", &flags->client.timeout, "of each call, from its sending [60s]");
  AddNumber(app, "--channels", flags->channels, "connections, used in turn by the callers", 1, 1000)
      ->capture_default_str();
}

void AddReports(CLI::App* app, LoadFlags* flags) {
  app->add_flag("--json", flags->json, "report as one line of JSON");
  app->add_option("--html", flags->html, "write a page with plots as well")->type_name("FILE");
  app->add_option("--csv", flags->csv, "write a line for each call as well")->type_name("FILE");
  app->add_option("--compare", flags->compare,
                  "an earlier report of --json: lists both side by side, with their ratios")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app->add_option(
         "--metrics", flags->metrics,
         "a server's metrics page, http://HOST:PORT/metrics: the report lists the changes; "
         "several pages are summed")
      ->type_name("URL");
}

}  // namespace

void AddLoadFlags(CLI::App* app, LoadFlags* flags) {
  Group(app, "Load", [=] { AddLoops(app, flags); });
  Group(app, "Abandonment", [=] { AddAbandonment(app, flags); });
  Group(app, "Calls", [=] { AddTexts(app, flags); });
  Group(app, "Connection", [=] { AddConnection(app, flags); });
  Group(app, "Report", [=] { AddReports(app, flags); });
}

void CheckLoadFlags(const LoadFlags& flags) {
  const auto refuse = [](const std::string& why) { throw CLI::ValidationError(why); };
  const AbandonmentOptions& abandonment = flags.abandonment;
  const bool open = flags.rate || flags.schedule || flags.find_rate;
  if (!open && !flags.concurrency) {
    refuse(
        "give --rate N, --schedule PARTS or --find-rate for an open loop, or --concurrency N for a "
        "closed one");
  }
  if (!open && flags.arrivals != "poisson") refuse("--arrivals requires an open loop");
  if (flags.find_rate && !(flags.objective && flags.objective->percent)) {
    refuse("--find-rate needs --objective pNN=TIME, as in p99=200ms");
  }
  if (flags.find_rate && !flags.csv.empty()) refuse("--csv excludes --find-rate");
  if (flags.rates[0] > flags.rates[1]) {
    refuse(absl::StrFormat("--rates %g %g: the maximum is below the minimum", flags.rates[0],
                           flags.rates[1]));
  }
  if (abandonment.deadlines + abandonment.cancels + abandonment.disconnects > 1) {
    refuse("--give-up, --cancel and --disconnect together are more than 1");
  }
  if (abandonment.disconnects > 0 &&
      (HasScheme(flags.client.server) || absl::StrContains(flags.client.server, ','))) {
    refuse("--disconnect needs one server as HOST:PORT");
  }
  const TlsOptions& tls = flags.client.tls;
  if (abandonment.disconnects > 0 &&
      (tls.enabled || !tls.ca_file.empty() || !tls.certificate_file.empty() ||
       !tls.server_name.empty() || !flags.client.token_file.empty())) {
    refuse("--disconnect excludes TLS and tokens");
  }
  if (flags.mix.empty() && flags.task == "translate" && flags.to.empty()) {
    refuse("--to LANGUAGE is needed to translate, also with --model");
  }
  if (flags.task == "summarize" && !flags.to.empty()) {
    refuse("--to excludes --task summarize: a summary has the language of its text");
  }
  if (flags.words[0] > flags.words[1]) {
    refuse(absl::StrFormat("--words %d %d: the maximum is below the minimum", flags.words[0],
                           flags.words[1]));
  }
}

LoadPlan BuildPlan(const LoadFlags& flags) {
  LoadPlan plan;
  plan.open = !flags.concurrency;
  plan.arrivals = flags.arrivals == "constant" ? ArrivalKind::kConstant : ArrivalKind::kPoisson;
  plan.schedule = flags.schedule ? *flags.schedule : RateSchedule::Constant(flags.rate.value_or(1));
  plan.callers = plan.open ? flags.max_in_flight : *flags.concurrency;
  plan.warm_up = flags.warm_up;
  if (flags.duration) {
    plan.duration = *flags.duration;
  } else if (flags.schedule) {
    plan.duration = flags.schedule->length();
  } else {
    plan.duration = flags.find_rate ? absl::Seconds(10)
                    : flags.calls   ? kUnlimited
                                    : absl::Seconds(30);
  }
  if (flags.calls) plan.max_calls = *flags.calls;
  plan.drain = flags.drain;
  plan.seed = flags.seed;
  return plan;
}

absl::StatusOr<std::vector<CallKind>> BuildCallKinds(const LoadFlags& flags) {
  CallKind kind;
  kind.texts = flags.texts;
  kind.deadline = flags.client.timeout;
  if (flags.file.empty()) {
    kind.sentences = MadeUpSentences(kMadeUpSentences, flags.words[0], flags.words[1], flags.seed);
    kind.texts_name =
        absl::StrFormat("made-up texts of %d to %d words", flags.words[0], flags.words[1]);
  } else {
    ASSIGN_OR_RETURN(kind.sentences, ReadSentences(flags.file));
    kind.texts_name = absl::StrCat(kind.sentences.size(), " texts of ", flags.file);
  }
  if (!flags.mix.empty()) return ReadMix(flags.mix, kind, flags.seed);
  const auto fill = [&](auto request) {
    request.set_model(flags.model);
    if (flags.beam) request.mutable_options()->set_beam_size(*flags.beam);
    kind.request = std::move(request);
  };
  if (flags.task == "summarize") {
    v1::SummarizeRequest request;
    request.set_language_code(flags.from);
    fill(std::move(request));
  } else {
    v1::TranslateRequest request;
    request.set_target_language_code(flags.to);
    request.set_source_language_code(flags.from);
    fill(std::move(request));
  }
  return std::vector<CallKind>{std::move(kind)};
}

LoadSettings BuildSettings(const LoadFlags& flags, const std::vector<CallKind>& kinds) {
  LoadSettings settings;
  settings.server = flags.client.server;
  settings.task = flags.task;
  if (!flags.to.empty()) absl::StrAppend(&settings.task, " to ", flags.to);
  if (!flags.model.empty()) absl::StrAppend(&settings.task, " with ", flags.model);
  if (!flags.mix.empty()) {
    settings.task = absl::StrCat(kinds.size(), " kinds of calls of ", flags.mix);
  }
  for (const CallKind& kind : kinds)
    settings.kinds.push_back({kind.name, kind.texts, kind.deadline});
  settings.texts = kinds[0].texts_name;
  for (const CallKind& kind : kinds) {
    if (kind.texts_name != settings.texts) settings.texts = "texts of each kind";
  }
  settings.channels = flags.channels;
  settings.objective = flags.objective;
  settings.abandonment = flags.abandonment;
  settings.plan = BuildPlan(flags);
  settings.cores = UsableCores();
  settings.started = absl::Now();
  return settings;
}

}  // namespace linnet::client
