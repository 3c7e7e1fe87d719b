// LoadReportHtml, declared in report.h: the text report under plots of the timeline and the rates.
// The page is written here and not by a script, because a machine that has only the client's
// package has no Python with matplotlib, and none of the libraries of linnet-load draws.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/figures.h"
#include "client/load/plot.h"
#include "client/load/report.h"

namespace linnet::client {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --limit: #d1242f; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1400px; margin: 0 auto; padding: 1.5rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); gap: 1.2rem; }
figure { margin: 0; border: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .8rem 1rem; }
figcaption { font-weight: 600; }
pre { overflow-x: auto; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: currentColor; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: currentColor; opacity: .2; } .axis { stroke: currentColor; }
line.limit { stroke: var(--limit); stroke-dasharray: 6 4; stroke-width: 1.5; } span.limit { color: var(--limit); }
.equal { stroke: currentColor; stroke-dasharray: 2 3; }
svg path { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; }
svg circle { fill: currentColor; stroke: none; } .alone circle { fill-opacity: .75; }
.s0 { color: #3b82f6; } .s1 { color: #d97706; } .s2 { color: #0f9d6a; } .s3 { color: #c026d3; }
.legend { margin: .2rem 0; } .legend span { margin-right: 1rem; font-size: 13px; }
.legend span::before { content: "\25CF  "; }
)";

double Ms(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

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
      const double percent = step == 0        ? 1e-9
                             : step == kSteps ? 100
                                              : 100 * (1 - std::pow(10, -nines));
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
std::vector<const LoadRecord*> PlotPoints(const LoadFindings& findings) {
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
  const std::vector<const LoadRecord*> points = PlotPoints(findings);
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
    const Figures figures = ComputeFigures(*point, settings.objective);
    throughput.series[0].points.emplace_back(figures.offered_rate, figures.answered_rate);
    if (settings.objective) {
      throughput.series[1].points.emplace_back(figures.offered_rate, figures.good_rate);
    }
    if (AnswerLatency(*point).count() == 0) continue;
    for (size_t i = 0; i < 3; ++i) {
      const double ms = Ms(AnswerLatency(*point).Percentile(kReportedPercentiles[i]));
      latency.series[i].points.emplace_back(figures.offered_rate, std::max(1e-3, ms));
    }
  }
  return PlotHtml(throughput) + PlotHtml(latency);
}

}  // namespace

std::string LoadReportHtml(const LoadSettings& settings, const LoadFindings& findings) {
  const std::string title = "Load on " + Escape(settings.server);
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<title>", title,
      "</title>\n<style>", kStyle, "</style></head><body>\n<h1>", title, "</h1>\n<p>",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", settings.started, absl::UTCTimeZone()),
      "</p>\n<div class=\"plots\">\n",
      PlotHtml(LatencyOverTime(settings, findings.result.timeline)),
      PlotHtml(Percentiles(settings, findings.result.record)), ThroughputPlots(settings, findings),
      PlotHtml(RatesOverTime(findings.result.timeline)), "</div>\n<pre>",
      Escape(LoadReport(settings, findings)), "</pre>\n</body></html>\n");
}

}  // namespace linnet::client
