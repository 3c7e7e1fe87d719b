#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace linnet::server {

// Statistics of one GPU from NVIDIA's driver; values that it does not support are nullopt.
struct GpuStats {
  int index = 0;  // number in NVML and nvidia-smi; CUDA_VISIBLE_DEVICES does not change it
  std::optional<uint64_t> memory_used_bytes;  // by all processes
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> utilization;  // fraction of the last sampling period with a kernel running
};

// NVML, loaded with dlopen, so that a server without a GPU needs no library of NVIDIA. Thread-safe.
class Nvml {
 public:
  // Returns null if the library or a working driver is missing.
  static std::unique_ptr<Nvml> Open(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();

  // Statistics of every GPU that can be queried.
  std::vector<GpuStats> Read() const;

 private:
  struct Functions;
  Nvml();

  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
};

}  // namespace linnet::server
