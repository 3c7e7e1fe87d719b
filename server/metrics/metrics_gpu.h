#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/metrics/nvml.h"

namespace linnet::server {

// Metrics of the GPUs, read with NVML at every scrape. Thread-safe.
class GpuMetrics final : public prometheus::Collectable {
 public:
  explicit GpuMetrics(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::unique_ptr<Nvml> nvml_;
};

}  // namespace linnet::server
