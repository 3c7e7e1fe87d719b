#include "model/ops/ops.h"

#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "model/ops/cpu/amx.h"
#include "model/ops/cpu/isa.h"

namespace linnet::ops {

Isa HostIsa() {
  static const Isa isa = [] {
    const std::string capability = at::get_cpu_capability();
    if (capability == "AVX512") return Isa::kAvx512;
    if (capability == "AVX2") return Isa::kAvx2;
    return Isa::kBaseline;
  }();
  return isa;
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kBaseline:
      return "x86-64-v2";
  }
  return "unknown";
}

std::string InstructionSet() { return IsaName(HostIsa()); }

std::string Describe() {
  std::string line = "cpu instructions " + InstructionSet();
  if (HasAmx()) line += " and amx";
  for (const char* name :
       {"dynamic_conv", "light_conv", "dynamic_conv_step", "light_conv_step", "depthwise_conv",
        "depthwise_conv_step", "self_attention", "self_attention_step", "source_attention",
        "source_attention_weights", "ssru_step", "best_logits", "beam_inputs", "beam_step",
        "add_norm", "add_norm_sum", "add_positions", "embed_tokens", "gated_conv_step"}) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
        (std::string("linnet::") + name).c_str(), /*overload_name=*/"");
    line += std::string(", ") + name + " (";
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) line += "cpu";
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CUDA)) line += " cuda";
    line += ")";
  }
  return line;
}

}  // namespace linnet::ops
