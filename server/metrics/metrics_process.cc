#include "server/metrics/metrics_process.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;

// Field numbers of /proc/self/stat, from 1 as in proc(5).
constexpr int kUserTicks = 14, kSystemTicks = 15, kStart = 22, kResidentPages = 24;

// Returns the number that follows `start` in the first line that begins with it; -1 for
// "unlimited".
absl::StatusOr<int64_t> NumberAfter(absl::string_view text, absl::string_view start) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, start)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t number = -1;
    if (!words.empty() && (words[0] == "unlimited" || absl::SimpleAtoi(words[0], &number)))
      return number;
  }
  return absl::InternalError(absl::StrCat("no line begins with \"", start, "\" and a number"));
}

prometheus::MetricFamily Family(const char* name, const char* help, prometheus::MetricType type,
                                double value) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return family;
}

}  // namespace

absl::StatusOr<ProcessStats> ReadProcessStats(const fs::path& proc) {
  ASSIGN_OR_RETURN(auto stat, ReadFile(proc / "self/stat", kMaxOperatorFileBytes));
  ASSIGN_OR_RETURN(auto system, ReadFile(proc / "stat", kMaxOperatorFileBytes));
  ASSIGN_OR_RETURN(auto limits, ReadFile(proc / "self/limits", kMaxOperatorFileBytes));

  // The second field is a name in brackets, which may hold blanks and brackets itself.
  const size_t name_end = stat.rfind(") ");
  std::vector<int64_t> fields(2, 0);
  if (name_end != std::string::npos) {
    for (absl::string_view word :
         absl::StrSplit(absl::string_view(stat).substr(name_end + 2), ' ')) {
      int64_t number = 0;
      // The state is a letter, and some fields may exceed 2^63; none of them is used.
      if (!absl::SimpleAtoi(word, &number)) number = 0;
      fields.push_back(number);
    }
  }
  if (std::ssize(fields) < kResidentPages)
    return absl::InternalError("/proc/self/stat has fewer fields than proc(5) lists");
  const auto field = [&](int number) { return fields[number - 1]; };
  ASSIGN_OR_RETURN(auto boot, NumberAfter(system, "btime "));
  ASSIGN_OR_RETURN(auto max_fds, NumberAfter(limits, "Max open files "));

  const auto ticks = [](int64_t count) {
    return absl::Seconds(static_cast<double>(count) / static_cast<double>(sysconf(_SC_CLK_TCK)));
  };
  ProcessStats stats;
  stats.cpu = ticks(field(kUserTicks) + field(kSystemTicks));
  stats.start = absl::FromUnixSeconds(boot) + ticks(field(kStart));
  stats.resident_bytes = field(kResidentPages) * sysconf(_SC_PAGESIZE);
  std::error_code error;
  const fs::directory_iterator fds(proc / "self/fd", error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot list self/fd: ", error.message()));
  stats.open_fds = static_cast<int>(std::distance(begin(fds), end(fds)));
  stats.max_fds = max_fds;
  return stats;
}

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  using prometheus::MetricType;
  const absl::StatusOr<ProcessStats> stats = ReadProcessStats(proc_);
  if (!stats.ok()) return {};
  std::vector<prometheus::MetricFamily> families = {
      Family("process_cpu_seconds_total", "User and system CPU time, in seconds.",
             MetricType::Counter, absl::ToDoubleSeconds(stats->cpu)),
      Family("process_start_time_seconds", "Start time of the process, in seconds since 1970.",
             MetricType::Gauge, absl::ToDoubleSeconds(stats->start - absl::UnixEpoch())),
      Family("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge,
             static_cast<double>(stats->resident_bytes)),
      Family("process_open_fds", "Open file descriptors.", MetricType::Gauge, stats->open_fds)};
  if (stats->max_fds >= 0) {
    families.push_back(Family("process_max_fds", "Limit on process_open_fds.", MetricType::Gauge,
                              static_cast<double>(stats->max_fds)));
  }
  return families;
}

}  // namespace linnet::server
