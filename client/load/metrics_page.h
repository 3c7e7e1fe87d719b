// Reads a server's metrics before and after a run and compares them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace linnet::client {

// The samples of a page in Prometheus' text format, keyed by name and labels as written there.
struct MetricsPage {
  std::map<std::string, std::string> types;  // "counter", "gauge", "histogram", … by name
  std::map<std::string, double>
      samples;  // "linnet_queue_duration_seconds_bucket{task=\"translate\",le=\"1\"}"
};

// INVALID_ARGUMENT, with the line, if the text has another format.
absl::StatusOr<MetricsPage> ParseMetrics(absl::string_view text);

// Adds the samples of `page` to those of the same name in `sum`, to treat replicas as one server.
void AddMetrics(const MetricsPage& page, MetricsPage* sum);

// The differences between two pages. Names include labels except `le`.
struct MetricsChanges {
  struct Histogram {
    std::string name;
    double count = 0;  // of the observations between the two pages, as all below
    double mean = 0;
    double p50 = 0, p90 = 0,
           p99 = 0;  // as PromQL's histogram_quantile interpolates
  };
  struct Gauge {
    std::string name;
    double before = 0;
    double after = 0;
  };
  std::vector<std::pair<std::string, double>> counters;  // those that grew
  std::vector<Histogram> histograms;                     // those with new observations
  std::vector<Gauge> gauges;                             // those that changed
};

// A counter that decreased is taken as reset to zero in between.
MetricsChanges Difference(const MetricsPage& before, const MetricsPage& after);

// Reads a page from "http://HOST:PORT/PATH"; errors are those of HttpGet and ParseMetrics.
absl::StatusOr<MetricsPage> ReadMetrics(const std::string& url, absl::Duration timeout);

}  // namespace linnet::client
