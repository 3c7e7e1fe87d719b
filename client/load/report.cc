#include "client/load/report.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/load/comparison.h"
#include "client/load/figures.h"

namespace linnet::client {
namespace {

// Tables fit into 80 columns, except those with names of the server's metrics.
std::string Percentiles(const LatencyHistogram& latency) {
  std::string cells;
  for (double percent : kReportedPercentiles) {
    absl::StrAppendFormat(&cells, "%9s", Milliseconds(latency.Percentile(percent)));
  }
  absl::StrAppendFormat(&cells, "%9s", Milliseconds(latency.max()));
  return cells;
}

std::string Head(const char* title) {
  std::string head = absl::StrFormat("\n%-19s%8s%7s", title, "calls", "share");
  for (const char* name : {"p50", "p90", "p99", "p99.9", "max"}) {
    absl::StrAppendFormat(&head, "%9s", name);
  }
  return head + '\n';
}

std::string Row(const std::string& name, int64_t calls, int64_t of,
                const LatencyHistogram& latency) {
  const double share = 100.0 * static_cast<double>(calls) / static_cast<double>(of);
  return absl::StrFormat("%-19s%8d%6.1f%%%s\n", name, calls, share, Percentiles(latency));
}

std::string ByStatus(const LoadRecord& record, const char* title,
                     LatencyHistogram StatusRecord::*latency) {
  std::string table = Head(title);
  for (const auto& [code, status] : record.by_status()) {
    const LatencyHistogram& histogram = status.*latency;
    table += Row(absl::StatusCodeToString(code), histogram.count(), record.measured(), histogram);
  }
  return table;
}

// "2 a call, deadline 1m"; of a mix what each kind has: "short: 2 a call, deadline 1m; long: …".
std::string KindsText(const std::vector<KindSettings>& kinds) {
  return absl::StrJoin(kinds, "; ", [&](std::string* text, const KindSettings& kind) {
    absl::StrAppend(text, kinds.size() > 1 ? kind.name + ": " : "", kind.texts_per_call,
                    " a call, deadline ", absl::FormatDuration(kind.deadline));
  });
}

// "en-de 2026-11-28.2 on cpu int8; 2 cores here".
std::string ModelsText(const LoadSettings& settings, const LoadFindings& findings) {
  std::string text =
      absl::StrJoin(findings.models, ", ", [](std::string* out, const AnsweringModel& model) {
        absl::StrAppend(out, model.name, " ", model.version);
        if (!model.compute_type.empty())
          absl::StrAppend(out, " on ", model.device, " ", model.compute_type);
      });
  if (settings.cores > 0) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", settings.cores,
                    settings.cores == 1 ? " core" : " cores", " here");
  }
  return text.empty() ? text : text + "\n";
}

std::string ByKind(const LoadSettings& settings, const LoadRecord& record) {
  std::string table = Head("answered, by kind");
  for (const auto& [kind, calls] : record.by_kind()) {
    table += Row(settings.kinds[kind].name, calls.answered, record.measured(), calls.latency);
  }
  return table;
}

std::string Points(const char* title, const std::vector<const LoadRecord*>& records,
                   const std::vector<std::string>& names, const LoadSettings& settings) {
  constexpr std::array<int, kPointHead.size()> kWidths = {10, 11, 10, 9, 9, 9, 9};
  std::string table = absl::StrFormat("\n%-13s", title);
  for (size_t i = 0; i < kPointHead.size(); ++i) {
    absl::StrAppendFormat(&table, "%*s", kWidths[i], kPointHead[i]);
  }
  table += '\n';
  for (size_t i = 0; i < records.size(); ++i) {
    absl::StrAppendFormat(&table, "%-13s", names[i]);
    const auto cells = PointRow(*records[i], settings.objective);
    for (size_t k = 0; k < cells.size(); ++k) {
      absl::StrAppendFormat(&table, "%*s", kWidths[k], cells[k]);
    }
    table += '\n';
  }
  return table;
}

std::string PartsAndProbes(const LoadSettings& settings, const LoadFindings& findings) {
  std::vector<const LoadRecord*> records;
  std::vector<std::string> names;
  for (const Probe& probe : findings.probes) {
    records.push_back(&probe.record);
    names.push_back(absl::StrFormat("%6.4g %s", probe.rate,
                                    probe.held      ? "held"
                                    : probe.gave_up ? "cut"
                                                    : "missed"));
  }
  if (!records.empty()) return Points("rate/s", records, names, settings);
  for (const LoadRecord& part : findings.result.parts) {
    records.push_back(&part);
    names.push_back(absl::StrFormat("from %.1f s", absl::ToDoubleSeconds(part.begin())));
  }
  return records.empty() ? "" : Points("schedule", records, names, settings);
}

std::string ServerText(const MetricsChanges& changes, absl::Duration elapsed) {
  std::string text = absl::StrFormat("\n%-78s%10s%11s%11s%11s\n", "server, over the whole run",
                                     "count", "mean", "p50", "p99");
  for (const MetricsChanges::Histogram& histogram : changes.histograms) {
    const auto value = [&](double v) { return MetricValue(histogram.name, v); };
    absl::StrAppendFormat(&text, "%-78s%10.0f%11s%11s%11s\n", histogram.name, histogram.count,
                          value(histogram.mean), value(histogram.p50), value(histogram.p99));
  }
  for (const auto& [name, growth] : changes.counters) {
    absl::StrAppendFormat(&text, "%-78s%10.6g%9.1f/s\n", name, growth,
                          growth / absl::ToDoubleSeconds(elapsed));
  }
  for (const MetricsChanges::Gauge& gauge : changes.gauges) {
    absl::StrAppendFormat(&text, "%-78s%10.6g before it %.6g\n", gauge.name, gauge.after,
                          gauge.before);
  }
  return text;
}

}  // namespace

std::string LoadReport(const LoadSettings& settings, const LoadFindings& findings) {
  const LoadResult& result = findings.result;
  const LoadRecord& record = result.record;
  const Figures figures = ComputeFigures(record, settings.objective);
  std::string report =
      absl::StrFormat("%s: %s, %s\n%s\n%d channel%s, %s; seed %d\n", settings.server, settings.task,
                      settings.texts, KindsText(settings.kinds), settings.channels,
                      settings.channels == 1 ? "" : "s", LoopText(settings), settings.plan.seed);
  report += ModelsText(settings, findings);
  absl::StrAppendFormat(&report, "measured for %.1f s%s", absl::ToDoubleSeconds(record.window()),
                        result.stopped ? ", until it was stopped" : "");
  if (record.warm_up() > 0) {
    absl::StrAppendFormat(&report, ", after a warm-up of %d calls", record.warm_up());
  }
  report += '\n';
  if (findings.searched) {
    absl::StrAppend(&report, PartsAndProbes(settings, findings), "\n",
                    SearchText(settings, findings), "\n");
    absl::StrAppendFormat(&report, "below is the probe at %.4g calls/s\n",
                          settings.plan.schedule.parts()[0].from);
  }
  absl::StrAppendFormat(&report, "\noffered   %10.1f calls/s  %d calls\n", figures.offered_rate,
                        record.offered());
  absl::StrAppendFormat(&report,
                        "answered  %10.1f calls/s  %.1f texts/s\n"
                        "tokens    %10.0f source/s %.0f target/s\n",
                        figures.answered_rate, figures.text_rate, figures.source_token_rate,
                        figures.target_token_rate);
  absl::StrAppendFormat(&report, "goodput   %10.1f calls/s", figures.good_rate);
  if (settings.objective) {
    absl::StrAppend(&report, "  answered within ", absl::FormatDuration(settings.objective->limit));
  }
  report += '\n';
  if (record.late() > 0) {
    absl::StrAppendFormat(&report,
                          "late      %10d calls    sent over %s late: callers or this "
                          "machine busy\n",
                          record.late(), absl::FormatDuration(LoadRecord::kLate));
  }
  if (record.not_sent() > 0) {
    absl::StrAppendFormat(&report, "not sent  %10d calls    due, but no caller was free\n",
                          record.not_sent());
  }
  for (Abandonment how : {Abandonment::kDeadline, Abandonment::kCancel, Abandonment::kDisconnect}) {
    if (record.abandoned(how) == 0) continue;
    absl::StrAppendFormat(&report, "abandoned %10d calls    %s after %s, as requested\n",
                          record.abandoned(how), AbandonmentText(how),
                          absl::FormatDuration(settings.abandonment.after));
  }
  if (!findings.searched) report += PartsAndProbes(settings, findings);
  if (record.measured() == 0) {
    report += "\nno call was measured\n";
  } else if (settings.plan.open) {
    report += ByStatus(record, "from the time due", &StatusRecord::from_intended);
    report += ByStatus(record, "from sending", &StatusRecord::from_sent);
  } else {
    report += ByStatus(record, "latency", &StatusRecord::from_sent);
  }
  if (settings.kinds.size() > 1 && record.measured() > 0) report += ByKind(settings, record);
  for (const auto& [code, status] : record.by_status()) {
    if (code == absl::StatusCode::kOk) continue;
    absl::StrAppend(&report, "\n", absl::StatusCodeToString(code),
                    ", the first: ", status.first_message, "\n");
  }
  if (findings.comparison) report += ComparisonText(*findings.comparison);
  if (findings.metrics) report += ServerText(*findings.metrics, findings.metrics_elapsed);
  return report;
}

}  // namespace linnet::client
