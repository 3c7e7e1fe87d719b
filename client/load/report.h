// Reports about a load run: text for a terminal, JSON for programs, and an HTML page with plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load/load_client.h"
#include "client/load/metrics_page.h"
#include "client/run/run.h"

namespace linnet::client {

// The latency objective. Goodput counts answers within `limit`. A search needs `percent`: the share
// of all calls, failed ones included, that must be answered within it.
struct Objective {
  absl::Duration limit;
  std::optional<double> percent;
};

// All calls of a kind have these in common.
struct KindSettings {
  std::string name;
  int texts_per_call = 1;
  absl::Duration deadline;
};

// The settings of a run that the report prints.
struct LoadSettings {
  std::string server;
  std::string task;                 // "translate to de"
  std::string texts;                // "1000 texts of sentences.en"
  std::vector<KindSettings> kinds;  // of a mix, in order; else one
  int channels = 1;
  std::optional<Objective> objective;  // without it, every answer is good
  AbandonmentOptions abandonment;
  LoadPlan plan;
  int cores = 0;  // that linnet-load may use
  absl::Time started;
};

// One rate that a search has tried.
struct Probe {
  double rate = 0;
  bool held = false;     // the rate met the objective
  bool gave_up = false;  // ended early, because enough calls had failed
  LoadRecord record;
};

// One figure of a report and of an earlier one.
struct ComparedFigure {
  std::string name;  // "answered_per_second"
  double here = 0, there = 0;
  // here / there; nullopt if one of both is 0.
  std::optional<double> ratio() const;
};

// A report beside an earlier one.
struct Comparison {
  std::string file, started;  // of the earlier one
  std::vector<ComparedFigure> figures;
  // The settings that the runs do not have in common: "in_flight: 16, there 8".
  std::vector<std::string> differences;
};

struct LoadFindings {
  LoadResult result;               // for a search: the last probe that held, else the last one
  bool searched = false;           // `probes` and `found` are set
  std::vector<Probe> probes = {};  // in order of time
  std::optional<double> found = {};
  std::optional<MetricsChanges> metrics = {};  // of the server, from before to after all calls
  absl::Duration metrics_elapsed = {};         // between the two readings
  std::vector<AnsweringModel> models = {};     // that answered calls
  std::optional<Comparison> comparison = {};
};

// The text report: rates, then percentiles for each status. Ends with a newline.
std::string LoadReport(const LoadSettings& settings, const LoadFindings& findings);

// The report as one line of JSON; times in milliseconds, rates per second.
std::string LoadReportJson(const LoadSettings& settings, const LoadFindings& findings);

// The text report below plots, as a self-contained page: well-formed XML that is also HTML.
std::string LoadReportHtml(const LoadSettings& settings, const LoadFindings& findings);

}  // namespace linnet::client
