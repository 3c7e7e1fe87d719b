#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/engine.h"

namespace linnet::model {

enum class Device { kCpu, kCuda };
enum class ComputeType { kAuto, kFloat32, kBfloat16, kFloat16, kInt8 };
// Where hypotheses are chosen: on the host, which waits for each step's logits, or beside the model
// (device_steps.h), where the host hears of a step while the next one runs.
enum class SearchPlace { kAuto, kHost, kDevice };

struct TorchEngineOptions {
  Device device = Device::kCpu;
  ComputeType compute = ComputeType::kAuto;
  int threads = 0;  // inside a step; 0 = one per core that this process may use
  int rows = 160;   // hypotheses that a step holds at most
  int64_t encoder_cache_tokens = 16384;  // source tokens that the encoder memory holds at most
  bool shortlist = false;  // searches look at the tokens of the bundle's shortlist alone
  SearchPlace search = SearchPlace::kAuto;
  bool graphs = true;  // a step of the device is launched as a CUDA graph
  // Every step has all rows, and every source is encoded alone: see below.
  bool batch_invariant = false;
  bool mask_eos = false;  // eos never comes: every hypothesis runs to its limit (measurements only)
};

// "cpu" | "cuda"; InvalidArgumentError lists what there is.
absl::StatusOr<Device> ParseDevice(std::string_view name);
// "auto" | "float32" | "bfloat16" | "float16" | "int8"; others are refused with the list of what
// is built.
absl::StatusOr<ComputeType> ParseComputeType(std::string_view name);

// "auto" | "host" | "device".
absl::StatusOr<SearchPlace> ParseSearchPlace(std::string_view name);

// Loads the bundle's TorchScript module, converts it to the compute type and device, packs its
// weights, and warms it up. FailedPreconditionError if the device is not there, cannot compute in
// that type, or the module breaks the contract.
//
// kAuto is float16 on CUDA. On the CPU it is int8 where the processor multiplies it in hardware
// (AVX512-VNNI) and the bundle can be packed (those made before it was possible cannot), and
// float32 elsewhere. int8 is for weights and activations of linear layers alone, the rest stays
// float32. bfloat16 is never chosen: without AMX its products are slower than float32's.
// (docs/MODELS.md has what each type costs in speed and in quality.)
//
// SearchPlace::kAuto is the device on CUDA and the host on the CPU, where it needs no row of
// logits whole. On the device the host's search stays for what the device's does not take
// (targets that are drawn, constraints, beams wider than 16, shortlists): in a step of its own
// after the device's. Both find the same, on the CPU bit for bit. Of a device that searches, events
// are a step behind: of a sequence that has just been seated the first one says 0 target tokens.
//
// What a sequence becomes does not depend on its company. Bit for bit, tokens and scores:
//   CPU, float32, int8   the same whatever shares its step or its encoder call, in whichever rows,
//                        whenever it joined, on however many threads; on another instruction set
//                        (AVX512, AVX2, baseline) last bits of float32 sums differ
//   CPU, bfloat16        the same in every test with random company, for a number of threads, but
//                        the library's products promise nothing
//   CPU, float32, of a bundle that cannot be packed: the same for a number of threads; its rows are
//                        filled up to counts at which the library's products were found to agree
//   CUDA                 not promised: its library picks kernels by the number of rows. (Nothing of
//                        CUDA has been measured yet.)
//
// With `batch_invariant` no product's shape depends on what else is in the batch, and cuBLAS may
// not split a sum: what the library computes for a row is then the same in any company, on CUDA and
// on the CPU. It costs the time of a full step for every step, and an encoder call for every
// source.
//
// On CUDA, float16 and bfloat16 are the types of weights, of what passes between layers, and of
// products' factors. Sums are kept, and logits given, in float32: near 12, the next bfloat16 is .06
// away, and hypotheses would tie that do not.
absl::StatusOr<std::unique_ptr<Engine>> MakeTorchEngine(const Bundle& bundle,
                                                        const TorchEngineOptions& options);

}  // namespace linnet::model
