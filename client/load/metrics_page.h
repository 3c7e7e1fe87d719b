// What a server says of itself, before a run and after it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace linnet::client {

// Samples of a page in Prometheus' text format, by their name with labels as
// the page has them.
struct MetricsPage {
  std::map<std::string, std::string> types;  // "counter", "gauge", "histogram", … by name
  std::map<std::string, double>
      samples;  // "linnet_queue_duration_seconds_bucket{task=\"translate\",le=\"1\"}"
};

// INVALID_ARGUMENT, with the line, if it is no such page.
absl::StatusOr<MetricsPage> ParseMetrics(absl::string_view text);

// Adds samples of the same name: several replicas as one.
void AddMetrics(const MetricsPage& page, MetricsPage* sum);

// What changed between two pages. Names are with labels, but for `le`.
struct MetricsChanges {
  struct Histogram {
    std::string name;
    double count = 0;  // of what was observed in between, as all below
    double mean = 0;
    double p50 = 0, p90 = 0,
           p99 = 0;  // as PromQL's histogram_quantile interpolates
  };
  struct Gauge {
    std::string name;
    double before = 0;
    double after = 0;
  };
  std::vector<std::pair<std::string, double>> counters;  // that grew
  std::vector<Histogram> histograms;                     // that were observed
  std::vector<Gauge> gauges;                             // that are not what they were
};

// A counter that fell has started again from zero.
MetricsChanges Difference(const MetricsPage& before, const MetricsPage& after);

// Reads a page from "http://HOST:PORT/PATH". INVALID_ARGUMENT if it is no such
// address; UNAVAILABLE if nobody answers, or with another status than 200.
absl::StatusOr<MetricsPage> ReadMetrics(const std::string& url, absl::Duration timeout);

}  // namespace linnet::client
