#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace linnet::server {

// What Linux says of this process.
struct ProcessStats {
  absl::Duration cpu;  // of all threads, those that have ended among them; in the kernel as well
  absl::Time start;
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int threads = 0;
  int open_fds = 0;
  int64_t max_fds = 0;  // the soft limit; -1 = any number
};

// From `proc`/self and `proc`/stat: proc(5). NOT_FOUND or INTERNAL where that is missing or other
// than expected.
absl::StatusOr<ProcessStats> ReadProcessStats(const std::filesystem::path& proc = "/proc");

// The same as metrics, read anew at every scrape, under the names that all of Prometheus' client
// libraries give them. Empty where there is no /proc. Thread-safe.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  explicit ProcessMetrics(std::filesystem::path proc = "/proc") : proc_(std::move(proc)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::filesystem::path proc_;
};

}  // namespace linnet::server
