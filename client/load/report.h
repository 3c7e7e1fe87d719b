#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/load/run.h"

namespace linnet::client {

// What the report says of a run beside its result.
struct LoadSettings {
  std::string server;
  std::string task;   // "translate to de"
  std::string texts;  // "sentences.en, 1000 texts"
  int texts_per_call = 1;
  int channels = 1;
  absl::Duration deadline;
  // Answers that come later are no goodput; without it, every answer is.
  std::optional<absl::Duration> objective;
  LoadPlan plan;
};

// For people: rates, then percentiles for each status. Ends with a line end.
std::string LoadReport(const LoadSettings& settings, const LoadResult& result);

// The same as one line of JSON; times in milliseconds, rates in a second.
std::string LoadReportJson(const LoadSettings& settings, const LoadResult& result);

}  // namespace linnet::client
