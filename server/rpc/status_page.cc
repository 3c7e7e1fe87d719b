#include "server/rpc/status_page.h"

#include <prometheus/client_metric.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace linnet::server {
namespace {

using SampleLabels = std::map<std::string, std::string>;

// The samples of gauges and counters by their names.
class Samples {
 public:
  explicit Samples(const std::vector<prometheus::MetricFamily>& families) {
    for (const prometheus::MetricFamily& family : families) families_[family.name] = &family;
  }

  // The labels and values of a metric.
  std::vector<std::pair<SampleLabels, double>> Of(const std::string& name) const {
    std::vector<std::pair<SampleLabels, double>> samples;
    const auto family = families_.find(name);
    if (family == families_.end()) return samples;
    for (const prometheus::ClientMetric& metric : family->second->metric) {
      SampleLabels labels;
      for (const auto& label : metric.label) labels[label.name] = label.value;
      const bool gauge = family->second->type == prometheus::MetricType::Gauge;
      samples.emplace_back(std::move(labels), gauge ? metric.gauge.value : metric.counter.value);
    }
    return samples;
  }

  // The sum of the samples that have these labels.
  double Sum(const std::string& name, const SampleLabels& wanted = {}) const {
    double sum = 0;
    for (const auto& [labels, value] : Of(name)) {
      bool fits = true;
      for (const auto& [key, label] : wanted) {
        const auto found = labels.find(key);
        fits = fits && found != labels.end() && found->second == label;
      }
      if (fits) sum += value;
    }
    return sum;
  }

 private:
  std::map<std::string, const prometheus::MetricFamily*> families_;
};

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

// "translate" for the label TASK_TRANSLATE.
std::string TaskName(absl::string_view label) {
  return absl::AsciiStrToLower(absl::StripPrefix(label, "TASK_"));
}

std::string Number(double value) { return absl::StrFormat("%.0f", value); }

std::string Cells(std::initializer_list<std::string> cells, absl::string_view tag = "td") {
  std::string row = "<tr>";
  for (const std::string& cell : cells) absl::StrAppend(&row, "<", tag, ">", cell, "</", tag, ">");
  return row + "</tr>\n";
}

// "serving", or why the model takes no calls.
std::string StateText(const Samples& samples, const std::string& model) {
  if (samples.Sum("linnet_model_serving", {{"model", model}}) > 0) {
    const bool loaded =
        samples.Sum("linnet_model_state", {{"model", model}, {"state", "loaded"}}) > 0;
    return loaded ? "serving" : "serving, loaded on demand";
  }
  return samples.Sum("linnet_model_state", {{"model", model}, {"state", "loading"}}) > 0 ? "loading"
                                                                                         : "down";
}

constexpr absl::string_view kStyle =
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:0 auto;padding:1.5rem}"
    "th,td{text-align:left;padding:.2rem 1rem .2rem 0}"
    "th{font-weight:600}";

}  // namespace

std::string StatusPage(const std::vector<prometheus::MetricFamily>& families, absl::Time now) {
  const Samples samples(families);
  std::string version;
  for (const auto& [labels, value] : samples.Of("linnet_build_info")) {
    if (const auto found = labels.find("version"); found != labels.end()) version = found->second;
  }
  // At least a second: the clock may have been set back, and "Up for 0" reads like a failure.
  const absl::Duration uptime = std::max(
      absl::Seconds(1),
      now - (absl::UnixEpoch() + absl::Seconds(samples.Sum("process_start_time_seconds"))));
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>linnet-server</title><style>",
      kStyle, "</style></head>\n<body><h1>linnet-server ", Escaped(version), "</h1>\n<p>",
      samples.Sum("linnet_ready") > 0 ? "Ready" : "Not ready", ". Up for ",
      absl::FormatDuration(absl::Trunc(uptime, absl::Seconds(1))), ". ",
      Number(samples.Sum("linnet_requests_in_flight")), " calls in flight, ",
      Number(samples.Sum("linnet_connections")), " connections, ",
      absl::FormatDuration(
          absl::Trunc(absl::Seconds(samples.Sum("linnet_drain_seconds")), absl::Milliseconds(1))),
      " of work admitted.</p>\n<table>\n",
      Cells({"model", "version", "task", "runs on", "state", "calls", "waiting", "running"}, "th"));
  // A model that could not be loaded has no version and no device, but its state is known.
  std::map<std::string, SampleLabels> models;
  for (const auto& [labels, value] : samples.Of("linnet_model_serving"))
    models[labels.at("model")] = {};
  for (const auto& [labels, value] : samples.Of("linnet_model_info"))
    models[labels.at("model")] = labels;
  for (auto& [model, info] : models) {
    const SampleLabels by_model = {{"model", model}};
    absl::StrAppend(
        &page,
        Cells({Escaped(model), Escaped(info["version"]), Escaped(TaskName(info["task"])),
               Escaped(absl::StrCat(info["device"], " ", info["compute"])),
               StateText(samples, model),
               Number(samples.Sum("linnet_model_requests_total", by_model)),
               Number(samples.Sum("linnet_sequences", {{"model", model}, {"state", "waiting"}})),
               Number(samples.Sum("linnet_sequences", {{"model", model}, {"state", "running"}}))}));
  }
  absl::StrAppend(
      &page,
      "</table>\n<p>Reload for new numbers; <a href=\"/metrics\">/metrics</a> has all of "
      "them, for Prometheus.</p></body></html>\n");
  return page;
}

}  // namespace linnet::server
