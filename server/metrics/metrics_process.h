#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace linnet::server {

// Statistics of this process, from Linux.
struct ProcessStats {
  absl::Duration cpu;  // user and system time of all threads, ended ones included
  absl::Time start;
  int64_t resident_bytes = 0;
  int open_fds = 0;
  int64_t max_fds = 0;  // the soft limit; -1 = any number
};

// Reads `proc`/self and `proc`/stat, see proc(5). NOT_FOUND if a file is missing, INTERNAL if its
// format is not the expected one.
absl::StatusOr<ProcessStats> ReadProcessStats(const std::filesystem::path& proc = "/proc");

// ProcessStats as metrics, read at every scrape, with the names that are usual in Prometheus client
// libraries. Empty without /proc. Thread-safe.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  explicit ProcessMetrics(std::filesystem::path proc = "/proc") : proc_(std::move(proc)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::filesystem::path proc_;
};

}  // namespace linnet::server
