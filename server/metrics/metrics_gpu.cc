#include "server/metrics/metrics_gpu.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace linnet::server {
std::vector<prometheus::MetricFamily> GpuMetrics::Collect() const {
  const std::vector<GpuStats> gpus = nvml_->Read();
  std::vector<prometheus::MetricFamily> families;
  auto add = [&](const char* name, const char* help, const auto& value_of) {
    prometheus::MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = prometheus::MetricType::Gauge;
    for (const GpuStats& gpu : gpus) {
      const auto value = value_of(gpu);
      if (!value.has_value()) continue;
      prometheus::ClientMetric& metric = family.metric.emplace_back();
      metric.label = {{"gpu", absl::StrCat(gpu.index)}};
      metric.gauge.value = static_cast<double>(*value);
    }
    if (!family.metric.empty()) families.push_back(std::move(family));
  };
  add("linnet_gpu_memory_used_bytes", "Memory of the GPU in use, by all processes.",
      [](const GpuStats& gpu) { return gpu.memory_used_bytes; });
  add("linnet_gpu_memory_total_bytes", "Memory of the GPU.",
      [](const GpuStats& gpu) { return gpu.memory_total_bytes; });
  add("linnet_gpu_utilization_ratio",
      "Fraction of the last sampling period in which a kernel ran; near 1 under light load "
      "already.",
      [](const GpuStats& gpu) { return gpu.utilization; });
  return families;
}

}  // namespace linnet::server
