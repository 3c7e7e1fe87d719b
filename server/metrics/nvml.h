#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace linnet::server {

// What NVIDIA's driver says of one GPU; what it does not support there is missing.
struct GpuStats {
  int index = 0;  // as NVML and nvidia-smi count, CUDA_VISIBLE_DEVICES notwithstanding
  std::string name;
  std::string uuid;
  std::optional<uint64_t> memory_used_bytes;  // by all processes
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> utilization;  // share of the last moments in which some kernel ran
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
};

// NVML, looked for when it is opened: a server without a GPU needs nothing of NVIDIA. Thread-safe.
class Nvml {
 public:
  // Null where there is no such library or no driver that answers it.
  static std::unique_ptr<Nvml> Open(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();

  // Of every GPU that answers.
  std::vector<GpuStats> Read() const;

 private:
  struct Functions;
  Nvml();

  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
};

}  // namespace linnet::server
