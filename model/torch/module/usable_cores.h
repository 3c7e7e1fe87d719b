#pragma once

#include <filesystem>

namespace linnet::model {

// The number of threads that this process can keep busy: the cores of its affinity mask, limited by
// its CPU quota. Fractions are rounded down, which leaves time for gRPC's threads: with one thread
// too many the quota runs out before its period ends, and the whole process is throttled. At
// least 1.
int UsableCores();

// The CPU quota in cores of this process's control group and its parents (`docker run --cpus`, a
// limit in Kubernetes); infinity without a limit or if none can be read. Supports cgroup v2 and v1.
// Only tests set `root`.
double CpuTimeLimit(const std::filesystem::path& root = "/");

}  // namespace linnet::model
