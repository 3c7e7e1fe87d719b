#include "model/torch/module/scripted_model.h"

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/ring.h"
#include "model/ops/huge_pages.h"
#include "model/ops/linear.h"
#include "model/ops/ops.h"
#include "model/ops/pack_linear.h"
#include "model/ops/packed_file.h"
#include "model/runtime/search/search.h"
#include "model/torch/module/catch_torch_errors.h"
#include "model/torch/module/compute_type.h"
#include "model/torch/module/mapped_module.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

struct Method {
  const char* name;
  size_t arguments;
};
constexpr Method kMethods[] = {{"encode", 2},     {"step", 7},
                               {"new_state", 1},  {"new_encoder_cache", 2},
                               {"step_best", 10}, {"features", 7},
                               {"logits_of", 1},  {"output_rows", 1},
                               {"align", 8},      {"min_backpointers", 0},
                               {"pack", 1}};

void CheckMethods(const torch::jit::Module& module) {
  for (const auto& [name, arguments] : kMethods) {
    const auto method = module.find_method(name);
    if (!method) {
      throw std::runtime_error(absl::StrCat("the module has no method ", name,
                                            ": export the bundle with this version of Linnet"));
    }
    const size_t count = method->function().getSchema().arguments().size() - 1;  // without self
    if (count != arguments) {
      throw std::runtime_error(absl::StrCat("the module's method ", name, " takes ", count,
                                            " arguments, the engine gives it ", arguments));
    }
  }
}

torch::jit::Module LoadModule(const std::filesystem::path& file) {
  torch::jit::Module module = LoadMapped(file);
  CheckMethods(module);
  module.eval();
  return module;
}

// Returns true if packing the module of the file once more would find the weights in memory that
// processes share.
bool Pack(torch::jit::Module& module, const std::filesystem::path& file, const char* type) {
  ops::PackedFile packed(
      std::filesystem::path(file).replace_extension(absl::StrCat(type, ".packed")));
  module.get_method("pack")({type});
  return packed.Publish();
}

// The scales of weights that are stored as int8 and not packed, by weight (stored_weights.py).
std::map<const c10::TensorImpl*, at::Tensor> TakeScales(const torch::jit::Module& module) {
  std::map<const c10::TensorImpl*, at::Tensor> found;
  for (torch::jit::Module part : module.modules()) {
    if (!part.hasattr("scales") || !part.attr("scales").isTensor()) continue;
    found[part.attr("weight").toTensor().unsafeGetTensorImpl()] = part.attr("scales").toTensor();
    part.setattr("scales", c10::IValue());
  }
  return found;
}

// Converts weights that are not packed in place, so that shared ones stay shared. Module::to would
// convert integers to floats as well. A weight that needs no conversion stays in the file's
// mapping.
absl::Status Convert(const torch::jit::Module& module, at::Device device, at::ScalarType type) {
  const std::map<const c10::TensorImpl*, at::Tensor> all_scales = TakeScales(module);
  const auto convert = [&](const std::string& name, at::Tensor tensor) -> absl::Status {
    if (ops::IsPacked(tensor)) return absl::OkStatus();
    if (const auto scales = all_scales.find(tensor.unsafeGetTensorImpl());
        scales != all_scales.end()) {
      tensor.set_data(tensor.to(at::kFloat).mul_(scales->second.unsqueeze(1)));
    }
    const at::ScalarType own = tensor.is_floating_point() ? type : tensor.scalar_type();
    RETURN_IF_ERROR(CheckRange(name, tensor, own));
    tensor.set_data(tensor.to(device, own).contiguous());
    return absl::OkStatus();
  };
  for (const auto& parameter : module.named_parameters()) {
    RETURN_IF_ERROR(convert(parameter.name, parameter.value));
  }
  for (const auto& buffer : module.named_buffers()) {
    RETURN_IF_ERROR(convert(buffer.name, buffer.value));
  }
  return absl::OkStatus();
}

std::vector<at::Tensor> Call(torch::jit::Module& module, const char* method,
                             std::vector<c10::IValue> arguments) {
  const c10::IValue result = module.get_method(method)(std::move(arguments));
  if (!result.isTensorList()) {
    throw std::runtime_error(absl::StrCat("the module's method ", method, " returns ",
                                          result.tagKind(), ", it must return a list of tensors"));
  }
  return result.toTensorVector();
}

// Makes, of tensors that the module has made with size 1 in this dimension, ones with `size`, of
// zeros. They take memory as they are written; the module would fill all of it.
std::vector<at::Tensor> InHugePages(std::vector<at::Tensor> tensors, int64_t dim, int64_t size) {
  for (at::Tensor& tensor : tensors) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    if (std::ssize(sizes) <= dim) continue;  // the caller finds what breaks the contract
    sizes[dim] = size;
    auto memory = ops::ZerosInHugePages(tensor.nbytes() * size);
    void* const data = memory.get();
    tensor = at::from_blob(
        data, sizes, [memory = std::move(memory)](void*) {}, tensor.options());
  }
  return tensors;
}

// From this many rows a thread on, each takes its part through the whole step, and waits for the
// others once a step instead of once an operator. With fewer, the threads share the weights of each
// operator, which would not stay in the cache of each; those of int8 are a quarter.
int64_t RowsOfPart(ComputeType compute) { return compute == ComputeType::kInt8 ? 12 : 32; }

// The first row of each part, and the number of rows. A part has whole runs, whose rows read what
// the rows before them write; so parts may differ in size.
std::vector<int64_t> PartBounds(const at::Tensor& backpointers, int64_t parts) {
  const int64_t rows = backpointers.size(0);
  ops::Ring slots = {};
  slots.backpointers = backpointers.const_data_ptr<int32_t>();
  slots.backpointers_stride = backpointers.stride(0);
  std::vector<int64_t> bounds;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t bound = i * rows / parts;
    while (ops::ContinuesRun(slots, bound)) --bound;
    bounds.push_back(bound);
  }
  bounds.push_back(rows);
  return bounds;
}

StepTensors SliceRows(const StepTensors& rows, int64_t first, int64_t last) {
  const auto part = [&](const at::Tensor& all) { return all.slice(0, first, last); };
  return {.tokens = part(rows.tokens),
          .positions = part(rows.positions),
          .backpointers = part(rows.backpointers),
          .blocks = part(rows.blocks),
          .source_lengths = part(rows.source_lengths),
          .counts = part(rows.counts),
          .also = part(rows.also),
          .temperatures = part(rows.temperatures)};
}

// The rows of all parts. Narrower parts are filled up with unused entries (best_logits.h).
BestLogits Joined(const std::vector<BestLogits>& parts) {
  int64_t width = 0;
  for (const BestLogits& part : parts) width = std::max(width, part.logits.size(1));
  std::vector<at::Tensor> logits, tokens, log_normalizers;
  for (const BestLogits& part : parts) {
    const std::array<int64_t, 2> padding = {0, width - part.logits.size(1)};
    logits.push_back(
        at::constant_pad_nd(part.logits, padding, -std::numeric_limits<float>::infinity()));
    tokens.push_back(at::constant_pad_nd(part.tokens, padding, kNoToken));
    log_normalizers.push_back(part.log_normalizers);
  }
  return {at::cat(logits), at::cat(tokens), at::cat(log_normalizers)};
}

}  // namespace

absl::StatusOr<ScriptedModel> ScriptedModel::Load(const std::filesystem::path& file,
                                                  at::Device device, ComputeType compute) {
  ops::Describe();  // the operators must be registered before the module is read
  // Weights created in inference mode could not be converted in place.
  c10::InferenceMode no_inference(false);
  c10::NoGradGuard no_grad;
  ASSIGN_OR_RETURN(const ComputeType resolved,
                   ResolveComputeType(compute, device.is_cuda() ? Device::kCuda : Device::kCpu));
  torch::jit::Module module = LoadModule(file);
  if (device.is_cpu()) {
    const char* const type = ComputeTypeName(resolved);
    if (Pack(module, file, type)) {
      module = LoadModule(file);
      Pack(module, file, type);
    }
  }
  RETURN_IF_ERROR(Convert(module, device, TorchType(resolved)));
  // The module is not frozen, since that saves no time: medians of 400 steps of four rows of an
  // en-de model, alternating in Python on a busy machine, are 7.80 ms as loaded, 7.82 ms
  // frozen, 7.77 ms frozen without optimised numerics. LibTorch 2.11's freeze_module also drops
  // methods of submodules that encode still calls, and torch::jit::freeze requires a method
  // forward.
  return ScriptedModel(device, resolved, std::move(module));
}

ScriptedModel::ScriptedModel(at::Device device, ComputeType compute, torch::jit::Module module)
    : device_(device),
      compute_(compute),
      module_(std::move(module)),
      has_step_best_(!module_.hasattr("picks_best") || module_.attr("picks_best").toBool()),
      has_align_features_(module_.find_method("align_features") && module_.find_method("best_of")),
      packs_sources_(module_.find_method("encode_blocks") && module_.hasattr("packs_sources") &&
                     module_.attr("packs_sources").toBool()) {}

void ScriptedModel::ConvertLogitsToFloat32(int vocabulary_size) {
  if (device_.is_cpu() || TorchType(compute_) == at::kFloat) return;
  std::vector<TokenId> tokens(vocabulary_size);
  std::iota(tokens.begin(), tokens.end(), 0);
  float_outputs_ = OutputRowsFor(std::move(tokens));
}

std::vector<at::Tensor> ScriptedModel::NewState(int64_t slots) {
  if (!device_.is_cpu()) return Call(module_, "new_state", {slots});
  return InHugePages(Call(module_, "new_state", {1}), /*dim=*/1, slots);
}

int ScriptedModel::MinBackpointers(int deepest) {
  if (!device_.is_cpu()) return deepest;  // a recorded graph has one shape for all steps
  const int64_t min = module_.get_method("min_backpointers")({}).toInt();
  return static_cast<int>(std::clamp<int64_t>(min, 1, deepest));
}

std::vector<at::Tensor> ScriptedModel::NewEncoderCache(int64_t blocks, int64_t block_tokens) {
  if (!device_.is_cpu()) return Call(module_, "new_encoder_cache", {blocks, block_tokens});
  return InHugePages(Call(module_, "new_encoder_cache", {1, block_tokens}), /*dim=*/0, blocks);
}

std::vector<at::Tensor> ScriptedModel::Encode(const at::Tensor& source, const at::Tensor& lengths) {
  return Call(module_, "encode", {source.to(device_), lengths.to(device_)});
}

std::vector<at::Tensor> ScriptedModel::EncodeBlocks(const at::Tensor& source,
                                                    const at::Tensor& lengths,
                                                    const at::Tensor& starts) {
  return Call(module_, "encode_blocks", {source, lengths, starts});
}

std::vector<c10::IValue> ScriptedModel::Arguments(const StepTensors& rows,
                                                  const std::vector<at::Tensor>& encoder_cache,
                                                  const std::vector<at::Tensor>& state) const {
  return {rows.tokens.to(device_),
          rows.positions.to(device_),
          rows.backpointers.to(device_),
          rows.blocks.to(device_),
          rows.source_lengths.to(device_),
          encoder_cache,
          state};
}

at::Tensor ScriptedModel::Step(const StepTensors& rows,
                               const std::vector<at::Tensor>& encoder_cache,
                               const std::vector<at::Tensor>& state, StepWeights* weights) {
  if (weights != nullptr) return ComputeLogits(Features(rows, encoder_cache, state, weights));
  if (float_outputs_) {
    return ops::LinearInFloat32(Features(rows, encoder_cache, state), float_outputs_->weight,
                                float_outputs_->bias);
  }
  return module_.get_method("step")(Arguments(rows, encoder_cache, state)).toTensor();
}

BestLogits ScriptedModel::StepBest(const StepTensors& rows,
                                   const std::vector<at::Tensor>& encoder_cache,
                                   const std::vector<at::Tensor>& state, StepWeights* weights) {
  const int64_t count = rows.tokens.size(0), threads = at::get_num_threads();
  if (!packed() || threads < 2 || count < threads * RowsOfPart(compute_)) {
    return StepBestOfPart(rows, encoder_cache, state, weights);
  }
  const std::vector<int64_t> bounds = PartBounds(rows.backpointers, threads);
  for (int64_t i = 0; i < threads; ++i) {
    const int64_t part = bounds[i + 1] - bounds[i];
    if (4 * part * threads < 3 * count) return StepBestOfPart(rows, encoder_cache, state, weights);
  }
  // No row reads what a row of another part writes (ops/cpu/ring.h).
  std::vector<BestLogits> parts(threads);
  std::vector<StepWeights> weights_of(threads, weights != nullptr ? *weights : StepWeights());
  std::vector<std::exception_ptr> errors(threads);
  ops::ParallelFor(threads, /*flops_per_item=*/int64_t{1} << 40, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ThreadModes modes;
      try {
        parts[i] = StepBestOfPart(SliceRows(rows, bounds[i], bounds[i + 1]), encoder_cache, state,
                                  weights != nullptr ? &weights_of[i] : nullptr);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  if (weights != nullptr) {
    std::vector<at::Tensor> tensors;
    for (StepWeights& part : weights_of) tensors.push_back(std::move(part.weights));
    weights->weights = at::cat(tensors);
  }
  return Joined(parts);
}

BestLogits ScriptedModel::StepBestOfPart(const StepTensors& rows,
                                         const std::vector<at::Tensor>& encoder_cache,
                                         const std::vector<at::Tensor>& state,
                                         StepWeights* weights) {
  std::vector<c10::IValue> arguments;
  if (weights != nullptr) {
    arguments.emplace_back(Features(rows, encoder_cache, state, weights));
  } else {
    arguments = Arguments(rows, encoder_cache, state);
  }
  arguments.insert(arguments.end(), {rows.counts, rows.also, rows.temperatures});
  const char* const method = weights != nullptr ? "best_of" : "step_best";
  const c10::IValue result = module_.get_method(method)(std::move(arguments));
  if (!result.isTuple() || result.toTupleRef().elements().size() != 3) {
    throw std::runtime_error(
        absl::StrCat("the module's method ", method, " must return a tuple of three tensors"));
  }
  const auto& parts = result.toTupleRef().elements();
  return {parts[0].toTensor(), parts[1].toTensor(), parts[2].toTensor()};
}

at::Tensor ScriptedModel::Features(const StepTensors& rows,
                                   const std::vector<at::Tensor>& encoder_cache,
                                   const std::vector<at::Tensor>& state, StepWeights* weights) {
  std::vector<c10::IValue> arguments = Arguments(rows, encoder_cache, state);
  if (weights == nullptr) return module_.get_method("features")(std::move(arguments)).toTensor();
  arguments.emplace_back(weights->layer);
  const c10::IValue result = module_.get_method("align_features")(std::move(arguments));
  if (!result.isTuple() || result.toTupleRef().elements().size() != 2) {
    throw std::runtime_error("the module's method align_features must return a tuple of two");
  }
  weights->weights = result.toTupleRef().elements()[1].toTensor();
  return result.toTupleRef().elements()[0].toTensor();
}

at::Tensor ScriptedModel::ComputeLogits(const at::Tensor& features) {
  return module_.get_method("logits_of")({features}).toTensor();
}

OutputRows ScriptedModel::OutputRowsFor(std::vector<TokenId> tokens) {
  const at::Tensor indices =
      at::from_blob(tokens.data(), {static_cast<int64_t>(tokens.size())}, at::kInt);
  const c10::IValue result = module_.get_method("output_rows")({indices});
  if (!result.isTuple() || result.toTupleRef().elements().size() != 2) {
    throw std::runtime_error("the module's method output_rows must return a tuple of two");
  }
  const auto& parts = result.toTupleRef().elements();
  OutputRows rows = {.tokens = std::move(tokens), .weight = parts[0].toTensor(), .bias = {}};
  if (!parts[1].isNone()) rows.bias = parts[1].toTensor().to(at::kFloat).contiguous();
  return rows;
}

at::Tensor ScriptedModel::Align(const StepTensors& rows,
                                const std::vector<at::Tensor>& encoder_cache,
                                const std::vector<at::Tensor>& state, int layer) {
  std::vector<c10::IValue> arguments = Arguments(rows, encoder_cache, state);
  arguments.emplace_back(layer);
  return module_.get_method("align")(std::move(arguments)).toTensor();
}

}  // namespace linnet::model
