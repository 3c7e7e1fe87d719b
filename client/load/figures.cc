#include "client/load/figures.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace linnet::client {
namespace {

double Rate(int64_t count, absl::Duration window) {
  const double seconds = absl::ToDoubleSeconds(window);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string ScheduleText(const LoadPlan& plan) {
  if (plan.schedule.length() == absl::InfiniteDuration()) {
    return absl::StrFormat("%.4g calls/s", plan.schedule.parts()[0].from);
  }
  std::string text;
  for (const RatePart& part : plan.schedule.parts()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", part.from);
    if (part.from != part.to) absl::StrAppend(&text, " to ", part.to);
    absl::StrAppend(&text, " calls/s for ", absl::FormatDuration(part.length));
  }
  return text;
}

}  // namespace

const LatencyHistogram& AnswerLatency(const LoadRecord& record) {
  static const auto* const kNone = new LatencyHistogram;
  const auto ok = record.by_status().find(absl::StatusCode::kOk);
  return ok == record.by_status().end() ? *kNone : ok->second.from_intended;
}

Figures ComputeFigures(const LoadRecord& record, const std::optional<Objective>& objective) {
  Figures figures;
  const LatencyHistogram& latency = AnswerLatency(record);
  figures.answered = latency.count();
  figures.good = objective ? latency.CountUpTo(objective->limit) : figures.answered;
  const absl::Duration window = record.window();
  figures.offered_rate = Rate(record.offered(), window);
  figures.answered_rate = Rate(record.answered_in_window(), window);
  figures.text_rate = Rate(record.texts(), window);
  figures.source_token_rate = Rate(record.source_tokens(), window);
  figures.target_token_rate = Rate(record.target_tokens(), window);
  // Answers are counted by their arrival, but good answers by their due time.
  if (figures.answered > 0) {
    figures.good_rate = figures.answered_rate *
                        (static_cast<double>(figures.good) / static_cast<double>(figures.answered));
  }
  if (const int64_t stayed = record.measured() + record.not_sent(); stayed > 0) {
    figures.good_share = static_cast<double>(figures.good) / static_cast<double>(stayed);
  }
  return figures;
}

std::array<std::string, 7> PointRow(const LoadRecord& record,
                                    const std::optional<Objective>& objective) {
  const Figures figures = ComputeFigures(record, objective);
  const LatencyHistogram& latency = AnswerLatency(record);
  std::array<std::string, 7> row;
  row[0] = absl::StrFormat("%.1f", figures.offered_rate);
  row[1] = absl::StrFormat("%.1f", figures.answered_rate);
  row[2] = absl::StrFormat("%.1f", figures.good_rate);
  for (size_t i = 0; i < 3; ++i) {
    row[3 + i] =
        latency.count() == 0 ? "-" : Milliseconds(latency.Percentile(kReportedPercentiles[i]));
  }
  row[6] = absl::StrCat(record.measured() - figures.answered + record.not_sent());
  return row;
}

std::string Milliseconds(absl::Duration duration) {
  const double ms = absl::ToDoubleMilliseconds(duration);
  const int decimals = ms < 10 ? 2 : ms < 100 ? 1 : 0;
  return absl::StrFormat("%.*f ms", decimals, ms);
}

std::string MetricValue(const std::string& name, double value) {
  if (absl::StrContains(name, "_seconds")) return Milliseconds(absl::Seconds(value));
  return absl::StrFormat("%.6g", value);
}

std::string LoopText(const LoadSettings& settings) {
  const LoadPlan& plan = settings.plan;
  if (!plan.open) return absl::StrCat("closed loop, ", plan.callers, " in flight");
  return absl::StrCat(
      "open loop, ", plan.arrivals == ArrivalKind::kPoisson ? "Poisson" : "constant",
      " arrivals at ", ScheduleText(plan), ", at most ", plan.callers, " in flight");
}

std::string ObjectiveText(const Objective& objective) {
  const std::string limit = absl::FormatDuration(objective.limit);
  if (!objective.percent) return "answered within " + limit;
  return absl::StrCat(*objective.percent, " % answered within ", limit);
}

bool MaxRateHeld(const LoadFindings& findings) {
  return findings.found.has_value() && std::all_of(findings.probes.begin(), findings.probes.end(),
                                                   [](const Probe& probe) { return probe.held; });
}

std::string SearchText(const LoadSettings& settings, const LoadFindings& findings) {
  const std::string objective = ObjectiveText(*settings.objective);
  if (findings.result.stopped) return "stopped before a rate was found";
  if (!findings.found) {
    return absl::StrFormat("not %s even at %.4g calls/s, the minimum of --rates", objective,
                           findings.probes.front().rate);
  }
  return absl::StrFormat(
      "%s up to %.4g calls/s%s", objective, *findings.found,
      MaxRateHeld(findings) ? ", the maximum of --rates: the limit is higher" : "");
}

const char* AbandonmentText(Abandonment how) {
  switch (how) {
    case Abandonment::kDeadline:
      return "by their deadline";
    case Abandonment::kCancel:
      return "cancelled";
    case Abandonment::kDisconnect:
      return "disconnected";
    case Abandonment::kNone:
      break;
  }
  return "stayed";
}

}  // namespace linnet::client
