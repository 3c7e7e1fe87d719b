#include "client/load/metrics_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/load/http.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

// Removes the label `le` from "name{a="b"}" and stores its value in *le; also removes the suffix
// `end` of the name.
std::string WithoutBound(absl::string_view sample, absl::string_view end, double* le) {
  const size_t brace = sample.find('{');
  std::string name(sample.substr(0, brace));
  name.resize(name.size() - end.size());
  std::vector<std::string> labels;
  absl::string_view list = sample.substr(brace + 1);
  absl::ConsumeSuffix(&list, "}");
  // A label's value may contain commas; a comma that ends a label follows a quote.
  while (!list.empty()) {
    size_t quote = list.find('"');
    if (quote == absl::string_view::npos) break;
    size_t close = quote + 1;
    while (close < list.size() && list[close] != '"') close += list[close] == '\\' ? 2 : 1;
    const absl::string_view label = list.substr(0, std::min(close + 1, list.size()));
    if (absl::StartsWith(label, "le=\"")) {
      const absl::string_view bound = label.substr(4, label.size() - 5);
      if (!absl::SimpleAtod(bound, le)) *le = std::numeric_limits<double>::infinity();
    } else {
      labels.emplace_back(label);
    }
    list.remove_prefix(label.size());
    absl::ConsumePrefix(&list, ",");
  }
  if (labels.empty()) return name;
  name += '{';
  for (size_t i = 0; i < labels.size(); ++i) absl::StrAppend(&name, i > 0 ? "," : "", labels[i]);
  return name + "}";
}

// "name{labels}" -> "name_sum{labels}"
std::string WithEnd(const std::string& name, const char* end) {
  const size_t brace = name.find('{');
  if (brace == std::string::npos) return name + end;
  return absl::StrCat(name.substr(0, brace), end, name.substr(brace));
}

// The increase of a counter.
double Growth(const MetricsPage& before, const std::string& sample, double now) {
  const auto found = before.samples.find(sample);
  if (found == before.samples.end() || now < found->second) return now;
  return now - found->second;
}

// `buckets` are pairs of bound and cumulative count, increasing; the last bound is infinite.
double Quantile(double q, const std::vector<std::pair<double, double>>& buckets) {
  const double wanted = q * buckets.back().second;
  double bound = 0, count = 0;
  for (const auto& [upper, upto] : buckets) {
    if (upto >= wanted && upto > count) {
      if (std::isinf(upper)) return bound;
      return bound + (upper - bound) * (wanted - count) / (upto - count);
    }
    bound = upper;
    count = upto;
  }
  return bound;
}

absl::string_view BareName(absl::string_view sample) { return sample.substr(0, sample.find('{')); }

}  // namespace

absl::StatusOr<MetricsPage> ParseMetrics(absl::string_view text) {
  MetricsPage page;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (absl::ConsumePrefix(&line, "# TYPE ")) {
      const std::pair<std::string, std::string> words = absl::StrSplit(line, ' ');
      page.types[words.first] = words.second;
      continue;
    }
    if (line.empty() || line[0] == '#') continue;
    // The value, and perhaps a time stamp, follows the labels or the name.
    const size_t brace = line.rfind('}');
    const size_t end = brace == absl::string_view::npos ? line.find(' ') : brace + 1;
    if (end == absl::string_view::npos || end >= line.size()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " has no value: ", line));
    }
    const std::vector<absl::string_view> words =
        absl::StrSplit(line.substr(end), ' ', absl::SkipEmpty());
    double value = 0;
    if (words.empty() || !absl::SimpleAtod(words[0], &value)) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " has no value: ", line));
    }
    page.samples[std::string(line.substr(0, end))] = value;
  }
  return page;
}

void AddMetrics(const MetricsPage& page, MetricsPage* sum) {
  sum->types.insert(page.types.begin(), page.types.end());
  for (const auto& [name, value] : page.samples) sum->samples[name] += value;
}

MetricsChanges Difference(const MetricsPage& before, const MetricsPage& after) {
  MetricsChanges changes;
  std::map<std::string, std::vector<std::pair<double, double>>> buckets;
  for (const auto& [sample, value] : after.samples) {
    const absl::string_view bare = BareName(sample);
    absl::string_view family = bare;
    if (absl::ConsumeSuffix(&family, "_bucket") && after.types.count(std::string(family)) > 0) {
      double bound = 0;
      const std::string name = WithoutBound(sample, "_bucket", &bound);
      buckets[name].emplace_back(bound, Growth(before, sample, value));
      continue;
    }
    const auto type = after.types.find(std::string(bare));
    if (type == after.types.end()) continue;  // _sum and _count
    if (type->second == "counter") {
      if (const double growth = Growth(before, sample, value); growth > 0) {
        changes.counters.emplace_back(sample, growth);
      }
    } else if (type->second == "gauge") {
      const auto found = before.samples.find(sample);
      const double was = found == before.samples.end() ? 0 : found->second;
      if (was != value) changes.gauges.push_back({sample, was, value});
    }
  }
  for (auto& [name, counts] : buckets) {
    std::sort(counts.begin(), counts.end());
    MetricsChanges::Histogram histogram;
    histogram.name = name;
    histogram.count = counts.back().second;
    if (histogram.count <= 0) continue;
    const std::string sum = WithEnd(name, "_sum");
    const auto now = after.samples.find(sum);
    if (now != after.samples.end()) {
      histogram.mean = Growth(before, sum, now->second) / histogram.count;
    }
    histogram.p50 = Quantile(0.5, counts);
    histogram.p90 = Quantile(0.9, counts);
    histogram.p99 = Quantile(0.99, counts);
    changes.histograms.push_back(std::move(histogram));
  }
  return changes;
}

absl::StatusOr<MetricsPage> ReadMetrics(const std::string& url, absl::Duration timeout) {
  ASSIGN_OR_RETURN(std::string body, HttpGet(url, timeout));
  absl::StatusOr<MetricsPage> page = ParseMetrics(body);
  if (!page.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(url, ": ", page.status().message()));
  }
  return page;
}

}  // namespace linnet::client
