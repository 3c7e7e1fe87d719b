#include "client/load/comparison.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace linnet::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRates[] = {"offered_per_second",       "answered_per_second",
                                  "goodput_per_second",       "texts_per_second",
                                  "source_tokens_per_second", "target_tokens_per_second",
                                  "found_per_second"};
// These are latencies of the answered calls, in milliseconds.
constexpr const char* kLatencies[] = {"mean", "p50", "p90", "p99", "p99.9", "max"};
// Two runs should have these in common if their figures are to mean anything together.
constexpr const char* kSettings[] = {
    "server", "task",         "texts",   "texts_per_call", "deadline_seconds", "channels",
    "loop",   "arrivals",     "rate",    "schedule",       "in_flight",        "seed",
    "models", "client_cores", "stopped", "objective_ms",   "objective_percent"};

Json Parse(absl::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// The value at a key of an object; null if there is none.
Json At(const Json& json, const std::string& key) {
  return json.is_object() && json.contains(key) ? json.at(key) : Json();
}

void Add(const std::string& name, const Json& here, const Json& there, Comparison& comparison) {
  if (here.is_number() && there.is_number())
    comparison.figures.push_back({name, here.get<double>(), there.get<double>()});
}

std::string Shown(const Json& value) {
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::optional<double> ComparedFigure::ratio() const {
  if (here == 0 || there == 0) return std::nullopt;
  return here / there;
}

absl::StatusOr<EarlierReport> EarlierReport::Read(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) return absl::InvalidArgumentError(absl::StrCat("cannot read ", file));
  const Json json = Parse(text.str());
  if (!At(json, "answered_per_second").is_number() || !At(json, "by_status").is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " is not a report of linnet-load: write one with --json >", file));
  }
  return EarlierReport(file, text.str());
}

Comparison EarlierReport::CompareWith(absl::string_view json) const {
  const Json here = Parse(json), there = Parse(json_);
  Comparison comparison;
  comparison.file = file_;
  comparison.started = Shown(At(there, "started"));
  for (const char* name : kRates) Add(name, At(here, name), At(there, name), comparison);
  // In a closed loop calls are due when they are sent.
  const auto latencies = [](const Json& report) {
    return At(At(At(report, "by_status"), "OK"), "from_intended_ms");
  };
  for (const char* name : kLatencies) {
    Add(absl::StrCat(name, "_ms"), At(latencies(here), name), At(latencies(there), name),
        comparison);
  }
  for (const char* name : kSettings) {
    const Json own = At(here, name), other = At(there, name);
    if (own == other) continue;
    comparison.differences.push_back(
        absl::StrCat(name, ": ", Shown(own), ", there ", Shown(other)));
  }
  return comparison;
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text =
      absl::StrFormat("\ncompared with %s of %s\n", comparison.file, comparison.started);
  for (const std::string& difference : comparison.differences)
    absl::StrAppend(&text, "  ", difference, "\n");
  absl::StrAppendFormat(&text, "%-26s%12s%12s%12s\n", "", "here", "there", "here/there");
  for (const ComparedFigure& figure : comparison.figures) {
    const std::optional<double> ratio = figure.ratio();
    absl::StrAppendFormat(&text, "%-26s%12.4g%12.4g%12s\n", figure.name, figure.here, figure.there,
                          ratio ? absl::StrFormat("%.2f", *ratio) : "-");
  }
  return text;
}

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(CPU_COUNT(&cores), 1) : 1;
}

}  // namespace linnet::client
