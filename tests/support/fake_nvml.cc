// A fake libnvidia-ml.so.1 for machines without a GPU. It has two GPUs, of which the second reports
// no utilization, and a third whose queries fail. With FAKE_NVML=no-driver
// initialisation fails. Declarations as in nvml.h of CUDA.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kDriverNotLoaded = 9, kGpuIsLost = 15;

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};

long IndexOf(const void* device) { return reinterpret_cast<long>(device) - 1; }

}  // namespace

extern "C" {

int fake_nvml_open = 0;  // nvmlInit_v2 less nvmlShutdown

int nvmlInit_v2() {
  const char* mode = std::getenv("FAKE_NVML");
  if (mode != nullptr && std::strcmp(mode, "no-driver") == 0) return kDriverNotLoaded;
  ++fake_nvml_open;
  return kSuccess;
}
int nvmlShutdown() {
  --fake_nvml_open;
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index == 2) return kGpuIsLost;
  *device = reinterpret_cast<void*>(static_cast<long>(index) + 1);
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = 80ull << 30;
  memory->used = (IndexOf(device) + 1ull) << 30;
  memory->free = memory->total - memory->used;
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (IndexOf(device) != 0) return kNotSupported;
  *rates = {37, 12};
  return kSuccess;
}

}  // extern "C"
