#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

enum class Device { kCpu, kCuda };
enum class ComputeType { kAuto, kFloat32, kBfloat16, kFloat16, kInt8 };
// Where the search runs: on the host, which waits for the logits of each step, or on the model's
// device (device_decoder.h), where the host collects a step while the next one runs.
enum class SearchPlace { kAuto, kHost, kDevice };
// When beam search is limited to the tokens of the bundle's shortlist. kAuto: if the manifest
// says so by shortlist_by_default, and the engine supports it: in float32 and int8 on the CPU; on
// CUDA a shortlist would move the search to the host. kAlways: in every bundle that has a
// shortlist, and an engine that does not support it is refused.
enum class ShortlistUse { kAuto, kAlways, kNever };

struct TorchEngineOptions {
  static constexpr int kMaxRows = 1 << 16;

  Device device = Device::kCpu;
  ComputeType compute = ComputeType::kAuto;
  int threads = 0;  // intra-op threads; 0 = one per core that this process may use
  int rows = 160;   // max hypotheses per step, at most kMaxRows
  int64_t encoder_cache_tokens = 16384;  // max source tokens in the encoder cache
  ShortlistUse shortlist = ShortlistUse::kAuto;
  SearchPlace search = SearchPlace::kAuto;
  bool graphs = true;  // launch steps of the device as CUDA graphs
  // Choose the algorithm of each gemm of a step by its time (ops/gemm_choice.h), when graphs are
  // recorded; only where the device searches, and not with batch_invariant.
  bool time_gemms = true;
  // Every step has all rows, and every source is encoded separately: see torch_engine.h.
  bool batch_invariant = false;
  bool mask_eos = false;  // decode every hypothesis to its limit (measurements only)
};

// "cpu" | "cuda"; for others InvalidArgumentError with this list.
absl::StatusOr<Device> ParseDevice(absl::string_view name);
// "auto" | "float32" | "bfloat16" | "float16" | "int8"; for others InvalidArgumentError with this
// list.
absl::StatusOr<ComputeType> ParseComputeType(absl::string_view name);

// "auto" | "true" | "false".
absl::StatusOr<ShortlistUse> ParseShortlistUse(absl::string_view name);

// "auto" | "host" | "device".
absl::StatusOr<SearchPlace> ParseSearchPlace(absl::string_view name);

}  // namespace linnet::model
