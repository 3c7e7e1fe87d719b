#pragma once

#include <filesystem>

namespace linnet::model {

// How many threads this process can keep busy: the cores of its affinity mask, but no more than the
// CPU time that it is granted. A part of a core is left to gRPC's threads: with a thread too many
// the quota is spent before its period ends, and all of the process stands still. At least 1.
int UsableCores();

// The CPU time, in cores, that the control group of this process and those above it grant
// (`docker run --cpus`, a limit in Kubernetes); infinity without a limit, or where none can be
// read. Knows cgroup v2 and v1. `root` is another folder in tests alone.
double CpuTimeLimit(const std::filesystem::path& root = "/");

}  // namespace linnet::model
