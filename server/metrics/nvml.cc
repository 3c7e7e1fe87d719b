#include "server/metrics/nvml.h"

#include <dlfcn.h>

namespace linnet::server {

// Declarations copied from nvml.h of CUDA 13 (NVML API Reference, "Device Queries"). The library is
// not linked, so its header need not be installed.
namespace nvml {
using nvmlReturn_t = int;
constexpr nvmlReturn_t NVML_SUCCESS = 0;
using nvmlDevice_t = struct nvmlDevice_st*;
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;  // per cent
};
}  // namespace nvml

using namespace nvml;

namespace {

// Calls the function. Returns false if the library lacks it or it fails.
template <typename... Parameters, typename... Arguments>
bool Query(nvmlReturn_t (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == NVML_SUCCESS;
}

}  // namespace

struct Nvml::Functions {
  nvmlReturn_t (*init)() = nullptr;
  nvmlReturn_t (*shutdown)() = nullptr;
  nvmlReturn_t (*count)(unsigned*) = nullptr;
  nvmlReturn_t (*handle)(unsigned, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t*) = nullptr;
  nvmlReturn_t (*utilization)(nvmlDevice_t, nvmlUtilization_t*) = nullptr;
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

std::unique_ptr<Nvml> Nvml::Open(const std::string& library) {
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->library_ == nullptr) return nullptr;
  const auto find = [&](auto*& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(nvml->library_, name));
  };
  Functions& functions = *nvml->functions_;
  find(functions.init, "nvmlInit_v2");
  find(functions.count, "nvmlDeviceGetCount_v2");
  find(functions.handle, "nvmlDeviceGetHandleByIndex_v2");
  find(functions.memory, "nvmlDeviceGetMemoryInfo");
  find(functions.utilization, "nvmlDeviceGetUtilizationRates");
  if (!Query(functions.init)) return nullptr;
  find(functions.shutdown, "nvmlShutdown");  // the destructor must call it from here on
  return nvml;
}

Nvml::~Nvml() {
  if (functions_->shutdown != nullptr) functions_->shutdown();
  if (library_ != nullptr) dlclose(library_);
}

std::vector<GpuStats> Nvml::Read() const {
  std::vector<GpuStats> gpus;
  unsigned count = 0;
  if (!Query(functions_->count, &count)) return gpus;
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t device = nullptr;
    if (!Query(functions_->handle, i, &device)) continue;
    GpuStats& gpu = gpus.emplace_back();
    gpu.index = static_cast<int>(i);
    if (nvmlMemory_t memory = {}; Query(functions_->memory, device, &memory)) {
      gpu.memory_used_bytes = memory.used;
      gpu.memory_total_bytes = memory.total;
    }
    if (nvmlUtilization_t use = {}; Query(functions_->utilization, device, &use))
      gpu.utilization = use.gpu / 100.0;
  }
  return gpus;
}

}  // namespace linnet::server
