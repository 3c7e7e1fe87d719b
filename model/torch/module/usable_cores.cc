#include "model/torch/module/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Returns quota / period, both in microseconds; "max" or -1 is no quota.
double Cores(std::istream& numbers) {
  double quota = 0, period = 0;
  if (!(numbers >> quota >> period) || quota <= 0 || period <= 0) return kUnlimited;
  return quota / period;
}

// The limit of the control group in this folder.
double ReadCpuLimit(const fs::path& group) {
  if (std::ifstream file(group / "cpu.max"); file) return Cores(file);  // v2: "150000 100000"
  std::ifstream quota(group / "cpu.cfs_quota_us"), period(group / "cpu.cfs_period_us");  // v1
  std::stringstream both;
  both << quota.rdbuf() << ' ' << period.rdbuf();
  return Cores(both);
}

// The min limit from the top of the hierarchy down to the group at `path`. In a container the top
// may be its own group while `path` is the host's: folders that do not exist have no limit.
double LimitAlong(const fs::path& top, const std::string& path) {
  double limit = ReadCpuLimit(top);
  fs::path group = top;
  for (const absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    group /= std::string(name);
    limit = std::min(limit, ReadCpuLimit(group));
  }
  return limit;
}

}  // namespace

double CpuTimeLimit(const fs::path& root) {
  // A line is NUMBER:CONTROLLERS:PATH; v2 is the hierarchy without controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  double limit = kUnlimited;
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      limit = std::min(limit, LimitAlong(root / "sys/fs/cgroup", parts[2]));
    } else if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end()) {
      limit = std::min(limit, LimitAlong(root / "sys/fs/cgroup/cpu", parts[2]));
    }
  }
  return limit;
}

int UsableCores() {
  cpu_set_t mask;
  const int cores = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
  return std::max(1, static_cast<int>(std::min<double>(cores, CpuTimeLimit())));
}

}  // namespace linnet::model
