// What is told of a load run: as text for a terminal, as JSON for programs, as
// a page with plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load/caller.h"
#include "client/load/metrics_page.h"
#include "client/load/run.h"

namespace linnet::client {

// Answers that come later are no goodput. The percentage is for a search: so
// many of all calls must be answered in time, and those that fail are not.
struct Objective {
  absl::Duration limit;
  std::optional<double> percent;
};

// What the report says of a run beside its result.
struct LoadSettings {
  std::string server;
  std::string task;                // "translate to de"
  std::string texts;               // "1000 texts of sentences.en"
  std::vector<std::string> kinds;  // names of a mix, in order; of a single kind empty
  int texts_per_call = 1;
  int channels = 1;
  absl::Duration deadline;
  std::optional<Objective> objective;  // without it, every answer is good
  Abandonment abandonment;
  LoadPlan plan;
  absl::Time started;
};

// One rate that a search has tried.
struct Probe {
  double rate = 0;
  bool held = false;
  bool gave_up = false;  // ended early, as enough calls had failed
  LoadRecord record;
};

struct LoadFindings {
  LoadResult result;          // of a search: the last probe that held, else the last one
  bool searched = false;      // probes and `found` are of a search
  std::vector<Probe> probes;  // in the order in which they were made
  std::optional<double> found;
  std::optional<MetricsChanges> metrics;  // of the server, from before the run to behind it
};

// For people: rates, then percentiles for each status. Ends with a line end.
std::string LoadReport(const LoadSettings& settings, const LoadFindings& findings);

// The same as one line of JSON; times in milliseconds, rates in a second.
std::string LoadReportJson(const LoadSettings& settings, const LoadFindings& findings);

// The same as a page with plots, complete in itself: well-formed XML that is
// HTML as well.
std::string LoadReportHtml(const LoadSettings& settings, const LoadFindings& findings);

}  // namespace linnet::client
