#include "model/torch/module/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/ops/ops.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

absl::Status NoCuda(const std::string& why) {
  return absl::FailedPreconditionError("device cuda was asked for, but " + why);
}

// Loads a library for the life of the process. Returns the error, empty on success.
std::string LoadLibrary(const std::filesystem::path& path) {
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return "";
  const char* error = dlerror();
  return error != nullptr ? error : absl::StrCat(path.string(), " cannot be loaded");
}

// The path of library `name` in the folder of the library that defines `symbol`.
std::filesystem::path Beside(const void* symbol, const char* name) {
  Dl_info info;
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return name;
  return std::filesystem::path(info.dli_fname).parent_path() / name;
}

absl::Status LoadCuda() {
  if (std::string error = LoadLibrary("libcuda.so.1"); !error.empty()) {
    return NoCuda(absl::StrCat("this machine has no NVIDIA driver (", error, "): use device cpu"));
  }
  // This must precede torch's first check for CUDA, whose result it caches.
  const auto torch_cuda =
      Beside(reinterpret_cast<const void*>(&at::globalContext), "libtorch_cuda.so");
  if (std::string error = LoadLibrary(torch_cuda); !error.empty()) {
    return NoCuda(absl::StrCat("LibTorch's CUDA libraries cannot be loaded (", error,
                               "): ./start.sh --device cuda fetches them"));
  }
  const auto ops_cuda =
      Beside(reinterpret_cast<const void*>(&ops::Describe), "liblinnet_ops_cuda.so");
  if (std::string error = LoadLibrary(ops_cuda); !error.empty()) {
    return NoCuda(absl::StrCat("the CUDA operators cannot be loaded (", error,
                               "): they are built where nvcc is found"));
  }
  if (!at::detail::getCUDAHooks().hasCUDA() || at::detail::getCUDAHooks().getNumGPUs() == 0) {
    return NoCuda(
        "no GPU is visible to this process: use device cpu, or check CUDA_VISIBLE_DEVICES");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<at::Device> OpenDevice(Device device) {
  if (device == Device::kCpu) return at::Device(at::kCPU);
  RETURN_IF_ERROR(LoadCuda());
  return at::Device(at::kCUDA, 0);
}

}  // namespace linnet::model
