#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/engine.h"
#include "model/torch/module/engine_options.h"

namespace linnet::model {

// Loads the bundle's TorchScript module, converts it to the compute type and device, packs its
// weights, and warms it up. Returns FailedPreconditionError if the device is missing, does not
// support the type, or the module breaks the contract (scripted_model.h). One thread may call the
// engine.
//
// Compute type: kAuto is float16 on CUDA. On the CPU it is int8 if the processor has AVX512-VNNI
// and the module has the method pack, otherwise float32. int8 applies to weights and activations of
// linear layers; the rest stays float32. bfloat16 is never chosen automatically: its batch
// invariance is not guaranteed, and with AVX512-BF16, where alone its speed was measured, it is
// slower than int8. docs/MODELS.md has the speed and quality of each type.
//
// Search: SearchPlace::kAuto is the device on CUDA and the host on the CPU, which never needs whole
// rows of logits. With the device, sequences that it does not support (sampling, constraints,
// wished lengths, beams above 16, shortlists) are searched on the host, in a separate step after
// the device's. Both give the same results, on the CPU bit for bit. A device decoder reports events
// one step late: the first event of a new sequence has 0 target tokens.
//
// Batch invariance: the result of a sequence does not depend on the other sequences. Bit for bit,
// tokens and scores:
//   CPU, float32, int8   the same in any batch, rows and encoder call, from any step on, with any
//                        number of threads; other instruction sets (AVX512, AVX2, baseline) differ
//                        in the last bits of float32 sums
//   CPU, bfloat16        the same in every test with random batches for a fixed number of threads;
//                        the library guarantees nothing
//   CPU, float32, module without pack
//                        the same for a fixed number of threads; steps are padded to row counts at
//                        which the library's gemms were found to agree
//   CUDA                 not guaranteed: the library selects kernels by the number of rows
//
// With `batch_invariant` the shape of a gemm never depends on the batch, and cuBLAS must not split
// sums: results are then batch invariant on CUDA and with all libraries on the CPU. Every step
// costs the time of a full one, and every source an encoder call.
//
// On CUDA, float16 and bfloat16 are the types of weights, activations and factors of gemms. Sums
// and logits are float32: near 12 neighbouring bfloat16 values are .06 apart, and distinct
// hypotheses would tie.
absl::StatusOr<std::unique_ptr<Engine>> MakeTorchEngine(const Bundle& bundle,
                                                        const TorchEngineOptions& options);

// The info of that engine without loading it, except for its grammar and its measured encoder cost.
absl::StatusOr<EngineInfo> TorchEngineInfo(const Bundle& bundle, const TorchEngineOptions& options);

}  // namespace linnet::model
