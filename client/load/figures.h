// The figures that all forms of the report share, and their texts.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/load/report.h"

namespace linnet::client {

inline constexpr std::array<double, 4> kReportedPercentiles = {50, 90, 99, 99.9};

struct Figures {
  int64_t answered = 0;  // calls due in the window that were answered
  int64_t good = 0;      // answered calls within the objective
  // Rates per second.
  double offered_rate = 0, answered_rate = 0, good_rate = 0;
  double text_rate = 0, source_token_rate = 0, target_token_rate = 0;
  double good_share = 0;  // of all calls that were due and not abandoned
};
Figures ComputeFigures(const LoadRecord& record, const std::optional<Objective>& objective);

// Latencies of the answered calls, from their due time; empty if there are none.
const LatencyHistogram& AnswerLatency(const LoadRecord& record);

// The result of a part of the schedule or of a probe as table cells, named by kPointHead. "missed"
// counts calls without an answer.
inline constexpr std::array<const char*, 7> kPointHead = {
    "offered/s", "answered/s", "goodput/s", "p50", "p90", "p99", "missed"};
std::array<std::string, 7> PointRow(const LoadRecord& record,
                                    const std::optional<Objective>& objective);

std::string Milliseconds(absl::Duration duration);  // "12.3 ms"
std::string MetricValue(const std::string& name,
                        double value);  // seconds as milliseconds
std::string LoopText(
    const LoadSettings& settings);  // "open loop, Poisson arrivals at 20 calls/s, …"
std::string ObjectiveText(const Objective& objective);  // "99 % within 200ms"
// True if the highest rate of the search's range held, so that the true limit may be higher.
bool MaxRateHeld(const LoadFindings& findings);
// "99 % of calls within 200ms up to 57.3 calls/s", or that no rate met the objective.
std::string SearchText(const LoadSettings& settings, const LoadFindings& findings);
const char* AbandonmentText(Abandonment how);  // "cancelled"

}  // namespace linnet::client
