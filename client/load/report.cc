#include "client/load/report.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace linnet::client {
namespace {

constexpr std::array<double, 4> kPercentiles = {50, 90, 99, 99.9};

double Rate(int64_t count, absl::Duration window) {
  const double seconds = absl::ToDoubleSeconds(window);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// What both forms tell.
struct Figures {
  int64_t answered = 0;  // measured calls with an answer
  int64_t good = 0;      // of these, within the objective
  double offered_rate, answered_rate, text_rate, source_token_rate, target_token_rate, good_rate;
};

Figures FiguresOf(const LoadSettings& settings, const LoadResult& result) {
  const LoadRecord& record = result.record;
  Figures figures;
  if (const auto ok = record.by_status().find(absl::StatusCode::kOk);
      ok != record.by_status().end()) {
    const LatencyHistogram& latency = ok->second.from_intended;
    figures.answered = latency.count();
    figures.good = settings.objective ? latency.CountUpTo(*settings.objective) : figures.answered;
  }
  const absl::Duration window = record.window();
  figures.offered_rate = Rate(record.measured() + record.not_sent(), window);
  figures.answered_rate = Rate(record.answered_in_window(), window);
  figures.text_rate = figures.answered_rate * settings.texts_per_call;
  figures.source_token_rate = Rate(record.source_tokens(), window);
  figures.target_token_rate = Rate(record.target_tokens(), window);
  // Answers are counted when they come, but whether they were good by when they were wanted.
  figures.good_rate = figures.answered == 0
                          ? 0
                          : figures.answered_rate * (static_cast<double>(figures.good) /
                                                     static_cast<double>(figures.answered));
  return figures;
}

std::string Milliseconds(absl::Duration duration) {
  const double ms = absl::ToDoubleMilliseconds(duration);
  const int decimals = ms < 10 ? 2 : ms < 100 ? 1 : 0;
  return absl::StrFormat("%.*f ms", decimals, ms);
}

std::string Loop(const LoadSettings& settings) {
  const LoadPlan& plan = settings.plan;
  if (!plan.open) return absl::StrCat("closed loop, ", plan.callers, " in flight");
  return absl::StrFormat("open loop, %s arrivals at %.4g calls/s, at most %d in flight",
                         plan.arrivals == ArrivalKind::kPoisson ? "Poisson" : "constant",
                         plan.calls_per_second, plan.callers);
}

std::string Percentiles(const LatencyHistogram& latency) {
  std::string cells;
  for (double percent : kPercentiles) {
    absl::StrAppendFormat(&cells, "%11s", Milliseconds(latency.Percentile(percent)));
  }
  absl::StrAppendFormat(&cells, "%11s", Milliseconds(latency.max()));
  return cells;
}

std::string Table(const LoadRecord& record, const char* title,
                  LatencyHistogram StatusRecord::*latency) {
  std::string table = absl::StrFormat("\n%-22s%9s%8s", title, "calls", "share");
  for (const char* head : {"p50", "p90", "p99", "p99.9", "max"}) {
    absl::StrAppendFormat(&table, "%11s", head);
  }
  table += '\n';
  for (const auto& [code, status] : record.by_status()) {
    const LatencyHistogram& histogram = status.*latency;
    const double share =
        100.0 * static_cast<double>(histogram.count()) / static_cast<double>(record.measured());
    absl::StrAppendFormat(&table, "%-22s%9d%7.1f%%%s\n", absl::StatusCodeToString(code),
                          histogram.count(), share, Percentiles(histogram));
  }
  return table;
}

nlohmann::ordered_json Json(const LatencyHistogram& latency) {
  nlohmann::ordered_json json;
  json["mean"] = absl::ToDoubleMilliseconds(latency.mean());
  for (double percent : kPercentiles) {
    json[absl::StrFormat("p%g", percent)] = absl::ToDoubleMilliseconds(latency.Percentile(percent));
  }
  json["max"] = absl::ToDoubleMilliseconds(latency.max());
  return json;
}

}  // namespace

std::string LoadReport(const LoadSettings& settings, const LoadResult& result) {
  const LoadRecord& record = result.record;
  const Figures figures = FiguresOf(settings, result);
  std::string report =
      absl::StrFormat("%s: %s, %s, %d a call, %d channel%s, deadline %s\n%s; seed %d\n",
                      settings.server, settings.task, settings.texts, settings.texts_per_call,
                      settings.channels, settings.channels == 1 ? "" : "s",
                      absl::FormatDuration(settings.deadline), Loop(settings), settings.plan.seed);
  absl::StrAppendFormat(&report, "measured for %.1f s%s", absl::ToDoubleSeconds(record.window()),
                        result.stopped ? ", until it was stopped" : "");
  if (record.warm_up() > 0) {
    absl::StrAppendFormat(&report, ", after a warm-up of %d calls", record.warm_up());
  }
  absl::StrAppendFormat(&report, "\n\noffered   %10.1f calls/s  %d calls\n", figures.offered_rate,
                        record.measured() + record.not_sent());
  absl::StrAppendFormat(&report,
                        "answered  %10.1f calls/s  %.1f texts/s, %.0f source and %.0f target "
                        "tokens/s\n",
                        figures.answered_rate, figures.text_rate, figures.source_token_rate,
                        figures.target_token_rate);
  absl::StrAppendFormat(&report, "goodput   %10.1f calls/s", figures.good_rate);
  if (settings.objective) {
    absl::StrAppend(&report, "  answered within ", absl::FormatDuration(*settings.objective));
  }
  report += '\n';
  if (record.late() > 0) {
    absl::StrAppendFormat(&report,
                          "late      %10d calls    sent more than %s after their time: all callers "
                          "were busy, or this machine is\n",
                          record.late(), absl::FormatDuration(LoadRecord::kLate));
  }
  if (record.not_sent() > 0) {
    absl::StrAppendFormat(&report, "not sent  %10d calls    due, but no caller was free\n",
                          record.not_sent());
  }
  if (record.measured() == 0) return report + "\nno call was measured\n";
  if (settings.plan.open) {
    report += Table(record, "from the time due", &StatusRecord::from_intended);
    report += Table(record, "from sending", &StatusRecord::from_sent);
  } else {
    report += Table(record, "latency", &StatusRecord::from_sent);
  }
  for (const auto& [code, status] : record.by_status()) {
    if (code == absl::StatusCode::kOk) continue;
    absl::StrAppend(&report, "\n", absl::StatusCodeToString(code),
                    ", the first: ", status.first_message, "\n");
  }
  return report;
}

std::string LoadReportJson(const LoadSettings& settings, const LoadResult& result) {
  const LoadPlan& plan = settings.plan;
  const LoadRecord& record = result.record;
  const Figures figures = FiguresOf(settings, result);
  nlohmann::ordered_json json;
  json["server"] = settings.server;
  json["task"] = settings.task;
  json["texts"] = settings.texts;
  json["texts_per_call"] = settings.texts_per_call;
  json["channels"] = settings.channels;
  json["deadline_seconds"] = absl::ToDoubleSeconds(settings.deadline);
  if (settings.objective) json["objective_ms"] = absl::ToDoubleMilliseconds(*settings.objective);
  json["loop"] = plan.open ? "open" : "closed";
  if (plan.open) {
    json["arrivals"] = plan.arrivals == ArrivalKind::kPoisson ? "poisson" : "constant";
    json["rate"] = plan.calls_per_second;
  }
  json["in_flight"] = plan.callers;
  json["seed"] = plan.seed;
  json["stopped"] = result.stopped;
  json["window_seconds"] = absl::ToDoubleSeconds(record.window());
  json["elapsed_seconds"] = absl::ToDoubleSeconds(result.elapsed);
  json["calls"] = {{"measured", record.measured()},
                   {"warm_up", record.warm_up()},
                   {"not_sent", record.not_sent()},
                   {"late", record.late()}};
  json["offered_per_second"] = figures.offered_rate;
  json["answered_per_second"] = figures.answered_rate;
  json["goodput_per_second"] = figures.good_rate;
  json["texts_per_second"] = figures.text_rate;
  json["source_tokens_per_second"] = figures.source_token_rate;
  json["target_tokens_per_second"] = figures.target_token_rate;
  nlohmann::ordered_json& by_status = json["by_status"] = nlohmann::ordered_json::object();
  for (const auto& [code, status] : record.by_status()) {
    nlohmann::ordered_json& entry = by_status[absl::StatusCodeToString(code)];
    entry["calls"] = status.from_sent.count();
    if (!status.first_message.empty()) entry["first_message"] = status.first_message;
    entry["from_intended_ms"] = Json(status.from_intended);
    entry["from_sent_ms"] = Json(status.from_sent);
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace linnet::client
