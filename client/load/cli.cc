#include "client/load/cli.h"

#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/command/exit_status.h"
#include "client/command/help.h"
#include "client/command/settings.h"
#include "client/command/source_language.h"
#include "client/load/comparison.h"
#include "client/load/figures.h"
#include "client/load/flags.h"
#include "client/load/report.h"
#include "client/load/search.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

constexpr absl::Duration kMetricsTimeout = absl::Seconds(10);

// The progress line on a terminal.
class LiveLine {
 public:
  LiveLine(std::ostream& err, bool is_terminal, int columns)
      : err_(err), is_terminal_(is_terminal), columns_(columns) {}
  ~LiveLine() { Clear(); }

  void Show(const std::string& title, const LoadProgress& progress) {
    const double rate =
        static_cast<double>(progress.answered) / absl::ToDoubleSeconds(progress.since);
    std::vector<std::string> fields = {
        absl::StrFormat("%s%6.1f s", title, absl::ToDoubleSeconds(progress.elapsed)),
        absl::StrFormat("%.1f answered/s", rate), absl::StrFormat("%d failed", progress.failed)};
    if (progress.answered > 0) {
      fields.push_back(absl::StrCat("p50 ", Milliseconds(progress.p50)));
      fields.push_back(absl::StrCat("p99 ", Milliseconds(progress.p99)));
    }
    fields.push_back(absl::StrFormat("%d in flight", progress.in_flight));
    fields.push_back(absl::StrFormat("%d calls", progress.ended));
    // Drop fields that do not fit: a wrapped line could not be cleared.
    std::string line;
    for (const std::string& field : fields) {
      if (line.size() + 2 + field.size() < static_cast<size_t>(columns_)) {
        absl::StrAppend(&line, line.empty() ? "" : "  ", field);
      }
    }
    err_ << kClear << line << std::flush;
  }
  // Writes a permanent line.
  void Note(const std::string& text) {
    if (is_terminal_) err_ << kClear << text << std::endl;
  }
  void Clear() {
    if (is_terminal_) err_ << kClear << std::flush;
  }
  bool is_terminal() const { return is_terminal_; }

 private:
  static constexpr char kClear[] = "\r\033[K";
  std::ostream& err_;
  const bool is_terminal_;
  const int columns_;
};

// The table of --csv: one line for each call that has ended. No dependency writes CSV.
class CallTable {
 public:
  CallTable(const std::string& path, absl::Duration warm_up, const std::vector<CallKind>& kinds)
      : out_(path), warm_up_(warm_up), kinds_(kinds) {
    out_ << "due_s,sent_s,ended_s,kind,status,left,texts,source_tokens,target_"
            "tokens\n";
  }
  bool good() { return static_cast<bool>(out_.flush()); }

  // Times count from the start of the measurement; those of the warm-up are negative.
  void Add(const CallTimes& times, const CallOutcome& outcome) {
    const auto seconds = [this](absl::Duration time) {
      return absl::ToDoubleSeconds(time - warm_up_);
    };
    out_ << absl::StrFormat(
        "%.6f,%.6f,%.6f,%s,%s,%s,%d,%d,%d\n", seconds(times.intended), seconds(times.sent),
        seconds(times.ended), Quoted(kinds_[outcome.kind].name),
        absl::StatusCodeToString(outcome.status.code()),
        outcome.abandonment == Abandonment::kNone ? "" : AbandonmentText(outcome.abandonment),
        outcome.texts, outcome.source_tokens, outcome.target_tokens);
  }

 private:
  // Quotes a field as RFC 4180 does.
  static std::string Quoted(const std::string& name) {
    if (name.find_first_of(",\"\n") == std::string::npos) return name;
    std::string quoted = "\"";
    for (char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  }

  std::ofstream out_;
  const absl::Duration warm_up_;
  const std::vector<CallKind>& kinds_;
};

absl::StatusOr<MetricsPage> ReadPages(const std::vector<std::string>& urls) {
  MetricsPage sum;
  for (const std::string& url : urls) {
    ASSIGN_OR_RETURN(const MetricsPage page, ReadMetrics(url, kMetricsTimeout));
    AddMetrics(page, &sum);
  }
  return sum;
}

// Probes rates until the search has ended. Sets `plan` to that of the probe in the result.
absl::StatusOr<LoadFindings> Search(const LoadFlags& flags, const MakeCall& call,
                                    const std::stop_token& stop, LiveLine* live, LoadPlan* plan) {
  const double share = *flags.objective->percent / 100;
  RateSearch search(flags.rates[0], flags.rates[1], flags.precision);
  constexpr double kCallsOfProbe = 10;
  const absl::Duration duration = plan->duration;
  LoadPlan next = *plan;
  uint64_t runs = 0;
  std::optional<LoadResult> shown;
  bool any_held = false;
  std::vector<Probe> probes;
  while (const std::optional<double> rate = search.Next()) {
    next.schedule = RateSchedule::Constant(*rate);
    next.seed = flags.seed + runs++;
    // Lengthen the probe at low rates: a few calls do not show whether the objective is met.
    next.duration = std::max(duration, absl::Seconds(kCallsOfProbe / *rate));
    // With so many bad calls the objective is missed for any likely number of arrivals.
    const double calls = 1.5 * *rate * absl::ToDoubleSeconds(next.duration) + 10;
    next.give_up =
        GiveUp{flags.objective->limit, static_cast<int64_t>(std::ceil((1 - share) * calls)) + 1};
    const std::string title = absl::StrFormat("%.4g calls/s  ", *rate);
    if (live->is_terminal()) {
      next.on_progress = [&](const LoadProgress& progress) { live->Show(title, progress); };
    }
    ASSIGN_OR_RETURN(LoadResult result, RunLoad(next, call, stop));
    // A probe without any arrival says nothing about the rate.
    if (result.record.offered() == 0 && !stop.stop_requested()) continue;
    Probe probe = {*rate, false, result.gave_up, result.record};
    const Figures figures = ComputeFigures(probe.record, flags.objective);
    probe.held =
        !result.gave_up && figures.good_share >= share * (1 - 1e-12);  // 999 of 1000 are 99.9 %
    if (probe.held || !any_held) {
      shown = std::move(result);
      *plan = next;
    }
    any_held = any_held || probe.held;
    probes.push_back(probe);
    live->Note(absl::StrFormat("%s%s, %.2f %% of calls in time", title,
                               probe.held ? "held" : "not held", 100 * figures.good_share));
    if (stop.stop_requested()) {
      shown->stopped = true;
      break;
    }
    search.Add(probe.held);
  }
  return LoadFindings{.result = *std::move(shown),
                      .searched = true,
                      .probes = std::move(probes),
                      .found = search.found()};
}

// The files of a run. They are opened before it, so that an error is reported at once.
struct OutputFiles {
  OutputFiles(const LoadFlags& flags, absl::Duration warm_up, const std::vector<CallKind>& kinds) {
    if (!flags.html.empty()) html.open(flags.html);
    if (!flags.csv.empty()) csv.emplace(flags.csv, warm_up, kinds);
  }
  bool good() { return html && (!csv || csv->good()); }

  std::ofstream html;
  std::optional<CallTable> csv;
};

absl::StatusOr<LoadFindings> RunOnce(const LoadPlan& plan, const MakeCall& call,
                                     const std::stop_token& stop) {
  ASSIGN_OR_RETURN(LoadResult result, RunLoad(plan, call, stop));
  return LoadFindings{.result = std::move(result)};
}

// Sets the source language if only one fits the models: a server cannot detect a language in
// made-up texts.
absl::Status NameLanguage(LoadFlags* flags, const std::stop_token& stop) {
  if (!flags->from.empty() || !flags->model.empty() || !flags->mix.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Client client, Client::Create(flags->client));
  const std::stop_callback cancel(stop, [&client] { client.Cancel(); });
  absl::Status status;
  if (flags->task == "translate") {
    v1::TranslateRequest request;
    request.set_target_language_code(flags->to);
    request.set_direct_only(true);  // the made-up texts are in no language to choose by
    status = SetLanguage(client, {}, request);
    flags->from = request.source_language_code();
  } else {
    v1::SummarizeRequest request;
    status = SetLanguage(client, {}, request);
    flags->from = request.language_code();
  }
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ? status : absl::OkStatus();
}

// Makes the calls of one run or of a search. Sets `plan` to that of the result.
absl::StatusOr<LoadFindings> MakeCalls(const LoadFlags& flags, const LoadEnvironment& environment,
                                       LoadClient& client, OutputFiles& files, LoadPlan* plan) {
  const std::stop_callback cancel(environment.stop, [&] { client.Cancel(); });
  const MakeCall call = [&](int64_t index, int number) { return client.Call(index, number); };
  LiveLine live(environment.err, environment.err_is_terminal, environment.columns);
  if (live.is_terminal()) {
    plan->on_progress = [&](const LoadProgress& progress) { live.Show("", progress); };
  }
  if (files.csv) {
    plan->on_call = [&](const CallTimes& times, const CallOutcome& outcome) {
      files.csv->Add(times, outcome);
    };
  }
  absl::StatusOr<LoadFindings> findings = flags.find_rate
                                              ? Search(flags, call, environment.stop, &live, plan)
                                              : RunOnce(*plan, call, environment.stop);
  plan->on_progress = {};  // they refer to what ends here
  plan->on_call = {};
  return findings;
}

int Load(LoadFlags flags, const LoadEnvironment& environment) {
  const auto fail = [&](int exit, const absl::Status& status) {
    environment.err << "linnet-load: " << ErrorText(status) << "\n";
    return exit;
  };
  const auto fail_to_reach = [&](const absl::Status& status) {
    return fail(absl::IsInvalidArgument(status) ? kExitUsage : kExitCode + status.raw_code(),
                status);
  };
  if (absl::Status status = NameLanguage(&flags, environment.stop); !status.ok())
    return fail_to_reach(status);
  absl::StatusOr<std::vector<CallKind>> kinds = BuildCallKinds(flags);
  if (!kinds.ok()) return fail(kExitUsage, kinds.status());
  LoadSettings settings = BuildSettings(flags, *kinds);
  absl::StatusOr<std::unique_ptr<LoadClient>> client =
      LoadClient::Connect(flags.client, flags.channels, *std::move(kinds), flags.abandonment,
                          flags.seed, environment.stop);
  if (!client.ok()) return fail_to_reach(client.status());
  std::optional<EarlierReport> earlier;
  if (!flags.compare.empty()) {
    absl::StatusOr<EarlierReport> read = EarlierReport::Read(flags.compare);
    if (!read.ok()) return fail(kExitUsage, read.status());
    earlier = *std::move(read);
  }
  OutputFiles files(flags, settings.plan.warm_up, (*client)->kinds());
  if (!files.good()) {
    return fail(kExitLocal, absl::PermissionDeniedError("cannot write " +
                                                        (files.html ? flags.csv : flags.html)));
  }
  const absl::StatusOr<MetricsPage> before = ReadPages(flags.metrics);
  const absl::Time read = absl::Now();
  if (!before.ok()) {
    return fail(absl::IsInvalidArgument(before.status()) ? kExitUsage : kExitLocal,
                before.status());
  }

  absl::StatusOr<LoadFindings> findings =
      MakeCalls(flags, environment, **client, files, &settings.plan);
  if (!findings.ok()) return fail(kExitLocal, findings.status());
  findings->models = (*client)->AnsweringModels();
  if (!flags.metrics.empty()) {
    findings->metrics_elapsed = absl::Now() - read;
    const absl::StatusOr<MetricsPage> after = ReadPages(flags.metrics);
    if (after.ok()) {
      findings->metrics = Difference(*before, *after);
    } else {
      fail(kExitLocal, after.status());  // and the report goes without
    }
  }

  if (earlier) findings->comparison = earlier->CompareWith(LoadReportJson(settings, *findings));
  environment.out << (flags.json ? LoadReportJson(settings, *findings) + "\n"
                                 : LoadReport(settings, *findings))
                  << std::flush;
  if (files.html.is_open()) files.html << LoadReportHtml(settings, *findings) << std::flush;
  if (!environment.out || !files.good()) {
    return fail(kExitLocal, absl::DataLossError("the report could not be written completely"));
  }
  if (flags.find_rate) return findings->found ? kExitOk : kExitLocal;
  const bool any_answer = findings->result.record.by_status().count(absl::StatusCode::kOk) > 0;
  return any_answer ? kExitOk : kExitLocal;
}

}  // namespace

int RunLoadCli(const std::vector<std::string>& arguments, const LoadEnvironment& environment) {
  LoadFlags flags;
  flags.client.retry.max_attempts = 1;  // retries would hide refused calls
  CLI::App app(
      "Measures the latency and throughput of a Linnet server under load. An open loop\n"
      "measures each call from the time at which it should have been sent, so that the\n"
      "latency includes the waiting that a stalled server causes.",
      "linnet-load");
  app.formatter(std::make_shared<Help>());
  app.set_version_flag("--version", "linnet-load " + Version());
  AddLoadFlags(&app, &flags);
  app.footer(
      "Examples:\n"
      "  linnet-load --from en --to de --rate 20 --warmup 5s --objective 500ms\n"
      "  linnet-load --from en --to de --schedule 10:30s,20..80:1m --html load.html\n"
      "  linnet-load --from en --to de --find-rate --objective p99=200ms\n"
      "  linnet-load --from en --to de --concurrency 32 --file lines.en --channels 4\n"
      "  linnet-load --from en --to de --rate 20 --compare earlier.json\n"
      "  linnet-load --task summarize --rate 2 --arrivals constant --words 50 200\n"
      "  linnet-load --mix calls.jsonl --rate 50 --cancel 0.1 --disconnect 0.05\n"
      "\n"
      "SIGINT ends the run with a report of what was measured until then.\n"
      "Exit status: 0; 1 no call was answered or no rate found; 2 wrong usage;\n"
      "64 + the gRPC code if the server cannot be reached.\n");
  const auto refuse = [&](absl::string_view why) {
    environment.err << "linnet-load: " << why << "\ntry 'linnet-load --help'\n";
    return kExitUsage;
  };
  const absl::StatusOr<Settings> settings = ReadSettings(environment.variables);
  if (!settings.ok()) return refuse(settings.status().message());
  const absl::StatusOr<std::vector<std::string>> all = WithSettings(*settings, app, arguments);
  if (!all.ok()) return refuse(all.status().message());
  try {
    // CLI11 wants the arguments in reverse order.
    app.parse(std::vector<std::string>(all->rbegin(), all->rend()));
    CheckLoadFlags(flags);
  } catch (const CLI::Success& help) {  // --help and --version
    return app.exit(help, environment.out, environment.err);
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  return Load(flags, environment);
}

}  // namespace linnet::client
