// LoadReportHtml, declared in report.h.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/figures.h"
#include "client/load/plot.h"
#include "client/load/report.h"

namespace linnet::client {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d9dee4; --paper: #fff; --card: #f6f8fa;
  --s0: #1f6feb; --s1: #d97706; --s2: #0f8a5f; --s3: #c026d3; --s4: #7a5c00; --s5: #b42318; --limit: #d1242f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa5b1; --line: #32383f; --paper: #0d1117; --card: #161b22;
    --s0: #58a6ff; --s1: #f0a83c; --s2: #3fc38a; --s3: #e27bf0; --s4: #d8b84a; --s5: #ff7b72; --limit: #ff6b6b; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1400px;
  margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: .2rem 0; } .soft, figcaption + p { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; min-width: 9rem; }
.tiles b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); gap: 1.2rem; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: var(--soft); }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
line.limit { stroke: var(--limit); stroke-dasharray: 6 4; stroke-width: 1.5; }
.equal { stroke: var(--soft); stroke-dasharray: 2 3; }
svg path { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; }
svg circle { fill: currentColor; stroke: none; } .alone circle { fill-opacity: .75; }
.s0 { color: var(--s0); } .s1 { color: var(--s1); } .s2 { color: var(--s2); }
.s3 { color: var(--s3); } .s4 { color: var(--s4); } .s5 { color: var(--s5); } span.limit { color: var(--limit); }
.legend span::before { content: "\25CF  "; } .legend span { margin-right: 1rem; font-size: 13px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } td:first-child, th:first-child { text-align: left; }
)";

double Ms(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

template <typename Cells>
std::string TableRow(const Cells& cells, const char* tag) {
  std::string row = "<tr>";
  for (const auto& cell : cells)
    absl::StrAppend(&row, "<", tag, ">", Escape(std::string(cell)), "</", tag, ">");
  return row + "</tr>\n";
}

std::string Table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string table = "<div class=\"wide\"><table>\n" + TableRow(head, "th");
  for (const std::vector<std::string>& row : rows) table += TableRow(row, "td");
  return table + "</table></div>\n";
}

std::string Tile(const std::string& value, const std::string& name) {
  return absl::StrCat("<div><b>", Escape(value), "</b>", Escape(name), "</div>\n");
}

std::string Tiles(const LoadSettings& settings, const LoadFindings& findings) {
  const LoadRecord& record = findings.result.record;
  const Figures figures = FiguresOf(record, settings.objective);
  const LatencyHistogram& latency = LatencyOf(record);
  std::string tiles = "<div class=\"tiles\">\n";
  if (findings.found) {
    tiles += Tile(absl::StrFormat("%.4g/s", *findings.found), "the rate found");
  }
  tiles += Tile(absl::StrFormat("%.1f/s", figures.offered_rate), "offered");
  tiles += Tile(absl::StrFormat("%.1f/s", figures.answered_rate), "answered");
  if (settings.objective) {
    tiles += Tile(absl::StrFormat("%.1f/s", figures.good_rate),
                  "answered within " + absl::FormatDuration(settings.objective->limit));
  }
  if (latency.count() > 0) {
    tiles += Tile(Milliseconds(latency.Percentile(50)), "p50");
    tiles += Tile(Milliseconds(latency.Percentile(99)), "p99");
  }
  tiles += Tile(absl::StrCat(record.measured() - figures.answered + record.not_sent()),
                "calls not answered");
  tiles += Tile(absl::StrFormat("%.0f/s", figures.target_token_rate), "target tokens");
  return tiles + "</div>\n";
}

Plot LatencyOverTime(const LoadSettings& settings, const Timeline& timeline) {
  Plot plot;
  plot.title = "Latency over time";
  plot.x_title = "when calls were due, seconds after the start";
  plot.y_title = "ms from the time due";
  plot.y_logarithmic = true;
  if (settings.objective) plot.limit = Ms(settings.objective->limit);
  const std::pair<const char*, double> lines[] = {
      {"p50", 50}, {"p90", 90}, {"p99", 99}, {"max", 100}};
  for (const auto& [name, percent] : lines) {
    Series series;
    series.name = name;
    absl::Duration begin = timeline.begin();
    for (const Timeline::Interval& interval : timeline.intervals()) {
      if (interval.latency.count() > 0) {
        const double ms = Ms(interval.latency.Percentile(percent));
        series.points.emplace_back(absl::ToDoubleSeconds(begin), std::max(ms, 1e-3));
      }
      begin += timeline.interval();
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

Plot RatesOverTime(const Timeline& timeline) {
  Plot plot;
  plot.title = "Load over time";
  plot.x_title = "seconds after the start";
  plot.y_title = "calls a second";
  plot.series = {{"offered", {}}, {"answered", {}}, {"failed", {}}};
  const double seconds = absl::ToDoubleSeconds(timeline.interval());
  absl::Duration begin = timeline.begin();
  for (const Timeline::Interval& interval : timeline.intervals()) {
    const int64_t counts[] = {interval.due, interval.answered, interval.failed};
    for (size_t i = 0; i < 3; ++i) {
      plot.series[i].points.emplace_back(absl::ToDoubleSeconds(begin),
                                         static_cast<double>(counts[i]) / seconds);
    }
    begin += timeline.interval();
  }
  return plot;
}

// Percentiles on the axis of HdrHistogram's plots: each further nine takes the same width.
Plot Percentiles(const LoadSettings& settings, const LoadRecord& record) {
  Plot plot;
  plot.title = "Percentiles";
  plot.x_title = "of all answered calls";
  plot.y_title = "ms";
  plot.y_logarithmic = true;
  if (settings.objective) plot.limit = Ms(settings.objective->limit);
  const auto add = [&](const char* name, const LatencyHistogram& latency) {
    Series series;
    series.name = name;
    // The axis ends at the slowest call.
    const double max = std::log10(static_cast<double>(std::max<int64_t>(2, latency.count())));
    constexpr int kSteps = 60;
    for (int step = 0; step <= kSteps && latency.count() > 0; ++step) {
      const double nines = max * step / kSteps;
      const double percent = step == 0 ? 1e-9 : 100 * (1 - std::pow(10, -nines));
      series.points.emplace_back(nines, std::max(1e-3, Ms(latency.Percentile(percent))));
    }
    plot.series.push_back(std::move(series));
  };
  const auto ok = record.by_status().find(absl::StatusCode::kOk);
  if (ok == record.by_status().end()) return plot;
  if (settings.plan.open) add("from the time due", ok->second.from_intended);
  add("from sending", ok->second.from_sent);
  const double max = plot.series[0].points.empty() ? 0 : plot.series[0].points.back().first;
  const std::pair<double, const char*> ticks[] = {
      {0, "0"},      {std::log10(2), "50 %"}, {1, "90 %"},    {2, "99 %"},
      {3, "99.9 %"}, {4, "99.99 %"},          {5, "99.999 %"}};
  for (const auto& [nines, label] : ticks) {
    if (nines <= max) plot.x_ticks.emplace_back(nines, label);
  }
  return plot;
}

// The probes of a search or the parts of a schedule.
std::vector<const LoadRecord*> PointsOf(const LoadFindings& findings) {
  std::vector<const LoadRecord*> points;
  for (const Probe& probe : findings.probes) {
    // A probe that gave up was too short to measure a rate.
    if (!probe.gave_up) points.push_back(&probe.record);
  }
  if (!findings.searched) {
    for (const LoadRecord& part : findings.result.parts) points.push_back(&part);
  }
  return points;
}

std::string ThroughputPlots(const LoadSettings& settings, const LoadFindings& findings) {
  const std::vector<const LoadRecord*> points = PointsOf(findings);
  if (points.size() < 2) return "";
  Plot throughput;
  throughput.title = "Throughput against offered load";
  throughput.x_title = "calls offered a second";
  throughput.y_title = "calls a second";
  throughput.equal = true;
  throughput.x_mark = findings.found;
  throughput.series = {{"answered", {}, false}};
  if (settings.objective) throughput.series.push_back({"goodput", {}, false});
  Plot latency;
  latency.title = "Latency against offered load";
  latency.x_title = throughput.x_title;
  latency.y_title = "ms from the time due";
  latency.y_logarithmic = true;
  latency.x_mark = findings.found;
  if (settings.objective) latency.limit = Ms(settings.objective->limit);
  latency.series = {{"p50", {}, false}, {"p90", {}, false}, {"p99", {}, false}};
  for (const LoadRecord* point : points) {
    const Figures figures = FiguresOf(*point, settings.objective);
    throughput.series[0].points.emplace_back(figures.offered_rate, figures.answered_rate);
    if (settings.objective) {
      throughput.series[1].points.emplace_back(figures.offered_rate, figures.good_rate);
    }
    if (LatencyOf(*point).count() == 0) continue;
    for (size_t i = 0; i < 3; ++i) {
      const double ms = Ms(LatencyOf(*point).Percentile(kReportedPercentiles[i]));
      latency.series[i].points.emplace_back(figures.offered_rate, std::max(1e-3, ms));
    }
  }
  return PlotHtml(throughput) + PlotHtml(latency);
}

std::string PointsTable(const LoadSettings& settings, const LoadFindings& findings) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, const LoadRecord& record) {
    const auto cells = PointRow(record, settings.objective);
    rows.push_back({name});
    rows.back().insert(rows.back().end(), cells.begin(), cells.end());
  };
  for (const Probe& probe : findings.probes) {
    add(probe.held ? "held" : probe.gave_up ? "not held, cut" : "not held", probe.record);
  }
  if (!findings.searched) {
    for (const LoadRecord& part : findings.result.parts) {
      add(absl::StrFormat("from %.1f s", absl::ToDoubleSeconds(part.begin())), part);
    }
  }
  if (rows.empty()) return "";
  std::vector<std::string> head = {findings.searched ? "probe" : "part"};
  head.insert(head.end(), kPointHead.begin(), kPointHead.end());
  return absl::StrCat("<h2>", findings.searched ? "Search" : "Schedule", "</h2>\n",
                      Table(head, rows));
}

std::vector<std::string> LatencyCells(const std::string& name, int64_t calls, double share,
                                      const LatencyHistogram& latency) {
  std::vector<std::string> row = {name, absl::StrCat(calls), absl::StrFormat("%.1f %%", share)};
  for (double percent : kReportedPercentiles) {
    row.push_back(Milliseconds(latency.Percentile(percent)));
  }
  row.push_back(Milliseconds(latency.max()));
  return row;
}

std::string CallTables(const LoadSettings& settings, const LoadRecord& record) {
  if (record.measured() == 0) return "<p>no call was measured</p>\n";
  const std::vector<std::string> head = {"", "calls", "share", "p50", "p90", "p99", "p99.9", "max"};
  const auto share = [&](int64_t calls) {
    return 100.0 * static_cast<double>(calls) / static_cast<double>(record.measured());
  };
  std::vector<std::vector<std::string>> statuses, kinds, reasons;
  for (const auto& [code, status] : record.by_status()) {
    const int64_t calls = status.from_intended.count();
    const std::string name = absl::StatusCodeToString(code);
    statuses.push_back(LatencyCells(name, calls, share(calls), status.from_intended));
    if (code != absl::StatusCode::kOk) reasons.push_back({name, status.first_message});
  }
  for (const auto& [kind, calls] : record.by_kind()) {
    kinds.push_back(LatencyCells(settings.kinds.empty() ? "" : settings.kinds[kind], calls.answered,
                                 share(calls.answered), calls.latency));
  }
  std::string html = "<h2>Calls, from the time due</h2>\n" + Table(head, statuses);
  if (!reasons.empty()) html += Table({"status", "first message"}, reasons);
  if (settings.kinds.size() > 1) html += "<h2>Answered, by kind</h2>\n" + Table(head, kinds);
  std::vector<std::vector<std::string>> abandoned;
  for (Abandonment how : {Abandonment::kDeadline, Abandonment::kCancel, Abandonment::kDisconnect}) {
    if (record.abandoned(how) > 0)
      abandoned.push_back({AbandonmentText(how), absl::StrCat(record.abandoned(how))});
  }
  if (!abandoned.empty()) {
    html += absl::StrCat("<h2>Abandoned after ", absl::FormatDuration(settings.abandonment.after),
                         ", as requested</h2>\n", Table({"how", "calls"}, abandoned));
  }
  return html;
}

std::string ServerTables(const MetricsChanges& changes, absl::Duration elapsed) {
  std::vector<std::vector<std::string>> histograms, counters, gauges;
  for (const MetricsChanges::Histogram& histogram : changes.histograms) {
    const auto value = [&](double v) { return MetricValue(histogram.name, v); };
    histograms.push_back({histogram.name, absl::StrFormat("%.0f", histogram.count),
                          value(histogram.mean), value(histogram.p50), value(histogram.p90),
                          value(histogram.p99)});
  }
  for (const auto& [name, growth] : changes.counters) {
    counters.push_back({name, absl::StrFormat("%.6g", growth),
                        absl::StrFormat("%.1f", growth / absl::ToDoubleSeconds(elapsed))});
  }
  for (const MetricsChanges::Gauge& gauge : changes.gauges) {
    gauges.push_back(
        {gauge.name, absl::StrFormat("%.6g", gauge.before), absl::StrFormat("%.6g", gauge.after)});
  }
  return absl::StrCat("<h2>What the server counted, over the whole run</h2>\n",
                      Table({"histogram", "count", "mean", "p50", "p90", "p99"}, histograms),
                      "<h2></h2>\n", Table({"counter", "grew by", "a second"}, counters),
                      "<h2></h2>\n", Table({"gauge", "before", "after"}, gauges));
}

}  // namespace

std::string LoadReportHtml(const LoadSettings& settings, const LoadFindings& findings) {
  const LoadResult& result = findings.result;
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"/>\n<title>linnet-load: ",
      Escape(settings.server), "</title>\n<style>", kStyle, "</style></head><body>\n<h1>Load on ",
      Escape(settings.server), "</h1>\n<p class=\"soft\">",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", settings.started, absl::UTCTimeZone()), ", ",
      Escape(settings.task), ", ", Escape(settings.texts), ", ", settings.texts_per_call,
      " a call, ", settings.channels, settings.channels == 1 ? " channel" : " channels",
      ", deadline ", absl::FormatDuration(settings.deadline), "; seed ", settings.plan.seed,
      "</p>\n<p class=\"soft\">", Escape(LoopText(settings)),
      absl::StrFormat("; measured for %.1f s", absl::ToDoubleSeconds(result.record.window())),
      result.stopped ? ", until it was stopped" : "", "</p>\n");
  if (findings.searched) {
    absl::StrAppend(&html, "<p><b>", Escape(SearchText(settings, findings)),
                    "</b>; but for the search, the page is about its probe at ",
                    absl::StrFormat("%.4g", settings.plan.schedule.parts()[0].from),
                    " calls/s</p>\n");
  }
  html += Tiles(settings, findings);
  absl::StrAppend(
      &html, "<div class=\"plots\">\n", PlotHtml(LatencyOverTime(settings, result.timeline)),
      PlotHtml(Percentiles(settings, result.record)), ThroughputPlots(settings, findings),
      PlotHtml(RatesOverTime(result.timeline)), "</div>\n");
  html += PointsTable(settings, findings) + CallTables(settings, result.record);
  if (findings.metrics) html += ServerTables(*findings.metrics, result.elapsed);
  return html + "</body></html>\n";
}

}  // namespace linnet::client
