#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace linnet::server {

// A page for people: how the server is, and its models with their versions, state and queues. Made
// of the samples of the metrics page, so both say the same; small HTML without scripts, and without
// requests to anywhere. Names are escaped: they come from manifests and flags.
std::string StatusPage(const std::vector<prometheus::MetricFamily>& families, absl::Time now);

}  // namespace linnet::server
