// LoadReportJson, declared in report.h.
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "client/load/figures.h"
#include "client/load/report.h"

namespace linnet::client {
namespace {

using Json = nlohmann::ordered_json;

Json LatencyJson(const LatencyHistogram& latency) {
  Json json;
  json["mean"] = absl::ToDoubleMilliseconds(latency.mean());
  for (double percent : kReportedPercentiles) {
    json[absl::StrFormat("p%g", percent)] = absl::ToDoubleMilliseconds(latency.Percentile(percent));
  }
  json["max"] = absl::ToDoubleMilliseconds(latency.max());
  return json;
}

Json PointJson(const LoadRecord& record, const std::optional<Objective>& objective) {
  const Figures figures = ComputeFigures(record, objective);
  Json json;
  json["offered_per_second"] = figures.offered_rate;
  json["answered_per_second"] = figures.answered_rate;
  json["goodput_per_second"] = figures.good_rate;
  json["good_share"] = figures.good_share;
  json["calls"] = record.offered();
  json["answered"] = figures.answered;
  json["late"] = record.late();
  json["from_intended_ms"] = LatencyJson(AnswerLatency(record));
  return json;
}

Json TimelineJson(const Timeline& timeline) {
  const double seconds = absl::ToDoubleSeconds(timeline.interval());
  Json rows = Json::array();
  absl::Duration begin = timeline.begin();
  for (const Timeline::Interval& interval : timeline.intervals()) {
    Json row;
    row["second"] = absl::ToDoubleSeconds(begin);
    row["offered_per_second"] = static_cast<double>(interval.due) / seconds;
    row["answered_per_second"] = static_cast<double>(interval.answered) / seconds;
    row["failed_per_second"] = static_cast<double>(interval.failed) / seconds;
    if (interval.latency.count() > 0) row["from_intended_ms"] = LatencyJson(interval.latency);
    rows.push_back(std::move(row));
    begin += timeline.interval();
  }
  return rows;
}

Json MetricsJson(const MetricsChanges& changes) {
  Json json;
  Json& counters = json["counters"] = Json::object();
  for (const auto& [name, growth] : changes.counters) counters[name] = growth;
  Json& histograms = json["histograms"] = Json::object();
  for (const MetricsChanges::Histogram& histogram : changes.histograms) {
    histograms[histogram.name] = {{"count", histogram.count},
                                  {"mean", histogram.mean},
                                  {"p50", histogram.p50},
                                  {"p90", histogram.p90},
                                  {"p99", histogram.p99}};
  }
  Json& gauges = json["gauges"] = Json::object();
  for (const MetricsChanges::Gauge& gauge : changes.gauges) {
    gauges[gauge.name] = {{"before", gauge.before}, {"after", gauge.after}};
  }
  return json;
}

Json ComparisonJson(const Comparison& comparison) {
  Json json;
  json["file"] = comparison.file;
  json["started"] = comparison.started;
  json["differences"] = comparison.differences;
  Json& ratios = json["ratios"] = Json::object();
  for (const ComparedFigure& figure : comparison.figures) {
    ratios[figure.name] = {{"here", figure.here}, {"there", figure.there}};
    ratios[figure.name]["ratio"] = figure.ratio() ? Json(*figure.ratio()) : Json(nullptr);
  }
  return json;
}

void AddKind(const KindSettings& kind, Json* json) {
  (*json)["texts_per_call"] = kind.texts_per_call;
  (*json)["deadline_seconds"] = absl::ToDoubleSeconds(kind.deadline);
}

void AddPlan(const LoadPlan& plan, Json* json) {
  (*json)["loop"] = plan.open ? "open" : "closed";
  if (plan.open) {
    (*json)["arrivals"] = plan.arrivals == ArrivalKind::kPoisson ? "poisson" : "constant";
    const std::vector<RatePart>& parts = plan.schedule.parts();
    if (plan.schedule.length() == absl::InfiniteDuration()) {
      (*json)["rate"] = parts[0].from;
    } else {
      Json& schedule = (*json)["schedule"] = Json::array();
      for (const RatePart& part : parts) {
        schedule.push_back({{"from", part.from},
                            {"to", part.to},
                            {"seconds", absl::ToDoubleSeconds(part.length)}});
      }
    }
  }
  (*json)["in_flight"] = plan.callers;
  (*json)["seed"] = plan.seed;
}

void AddSettings(const LoadSettings& settings, Json* json) {
  (*json)["server"] = settings.server;
  (*json)["started"] = absl::FormatTime(absl::RFC3339_sec, settings.started, absl::UTCTimeZone());
  (*json)["task"] = settings.task;
  (*json)["texts"] = settings.texts;
  (*json)["channels"] = settings.channels;
  if (settings.kinds.size() == 1) AddKind(settings.kinds[0], json);
  if (settings.objective) {
    (*json)["objective_ms"] = absl::ToDoubleMilliseconds(settings.objective->limit);
    if (settings.objective->percent) (*json)["objective_percent"] = *settings.objective->percent;
  }
  AddPlan(settings.plan, json);
  (*json)["client_cores"] = settings.cores;
}

Json ByStatusJson(const LoadRecord& record) {
  Json json = Json::object();
  for (const auto& [code, status] : record.by_status()) {
    Json& entry = json[absl::StatusCodeToString(code)];
    entry["calls"] = status.from_sent.count();
    if (!status.first_message.empty()) entry["first_message"] = status.first_message;
    entry["from_intended_ms"] = LatencyJson(status.from_intended);
    entry["from_sent_ms"] = LatencyJson(status.from_sent);
  }
  return json;
}

}  // namespace

std::string LoadReportJson(const LoadSettings& settings, const LoadFindings& findings) {
  const LoadResult& result = findings.result;
  const LoadRecord& record = result.record;
  const Figures figures = ComputeFigures(record, settings.objective);
  Json json;
  AddSettings(settings, &json);
  Json& models = json["models"] = Json::array();
  for (const AnsweringModel& model : findings.models) {
    models.push_back({{"name", model.name},
                      {"version", model.version},
                      {"device", model.device},
                      {"compute_type", model.compute_type}});
  }
  json["stopped"] = result.stopped;
  json["window_seconds"] = absl::ToDoubleSeconds(record.window());
  json["elapsed_seconds"] = absl::ToDoubleSeconds(result.elapsed);
  json["calls"] = {{"measured", record.measured()},
                   {"warm_up", record.warm_up()},
                   {"not_sent", record.not_sent()},
                   {"late", record.late()}};
  json["left"] = {{"deadline", record.abandoned(Abandonment::kDeadline)},
                  {"cancel", record.abandoned(Abandonment::kCancel)},
                  {"disconnect", record.abandoned(Abandonment::kDisconnect)}};
  json["offered_per_second"] = figures.offered_rate;
  json["answered_per_second"] = figures.answered_rate;
  json["goodput_per_second"] = figures.good_rate;
  json["texts_per_second"] = figures.text_rate;
  json["source_tokens_per_second"] = figures.source_token_rate;
  json["target_tokens_per_second"] = figures.target_token_rate;
  json["by_status"] = ByStatusJson(record);
  if (settings.kinds.size() > 1) {
    Json& kinds = json["kinds"] = Json::object();
    for (const auto& [kind, calls] : record.by_kind()) {
      Json& entry = kinds[settings.kinds[kind].name];
      entry = {{"calls", calls.calls},
               {"answered", calls.answered},
               {"target_tokens", calls.target_tokens},
               {"from_intended_ms", LatencyJson(calls.latency)}};
      AddKind(settings.kinds[kind], &entry);
    }
  }
  if (findings.searched) {
    json["found_per_second"] = findings.found ? Json(*findings.found) : Json(nullptr);
    json["found_is_ceiling"] = MaxRateHeld(findings);
    Json& probes = json["probes"] = Json::array();
    for (const Probe& probe : findings.probes) {
      Json point = {{"rate", probe.rate}, {"held", probe.held}, {"cut", probe.gave_up}};
      point.update(PointJson(probe.record, settings.objective));
      probes.push_back(std::move(point));
    }
  }
  if (!result.parts.empty()) {
    Json& parts = json["parts"] = Json::array();
    for (const LoadRecord& part : result.parts) {
      Json point = {{"begin_seconds", absl::ToDoubleSeconds(part.begin())},
                    {"window_seconds", absl::ToDoubleSeconds(part.window())}};
      point.update(PointJson(part, settings.objective));
      parts.push_back(std::move(point));
    }
  }
  json["interval_seconds"] = absl::ToDoubleSeconds(result.timeline.interval());
  json["timeline"] = TimelineJson(result.timeline);
  if (findings.comparison) json["compared"] = ComparisonJson(*findings.comparison);
  if (findings.metrics) json["server_metrics"] = MetricsJson(*findings.metrics);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace linnet::client
