#pragma once

#include <string>

// The operators of liblinnet_ops, `torch.ops.linnet.*`:
//
//   dynamic_conv, light_conv             convolution.h
//   dynamic_conv_step, light_conv_step   convolution_step.h
//   depthwise_conv                       depthwise_conv.h
//   depthwise_conv_step                  depthwise_conv_step.h
//   linear, pack_linear, quantize_linear linear.h
//   linear_norm                          linear.h
//   add_norm, add_norm_sum               add_norm.h
//   embed_tokens, add_positions          embed.h
//   gated_conv_step                      gated_conv_step.h
//   dynamic_conv_layer_step              gated_conv_step.h
//   best_logits                          best_logits.h
//   beam_inputs, beam_step               beam_search.h
//   self_attention                       self_attention.h
//   self_attention_step                  self_attention_step.h
//   source_attention                     source_attention.h
//   ssru_step                            ssru_step.h
//
// Loading the library registers them, for torch::jit::load() in C++ and torch.ops.load_library() in
// Python. liblinnet_ops_cuda adds the CUDA kernels in the same way.
namespace linnet::ops {

// One line for the log: the devices for which each operator has a kernel, and the instruction set
// of the CPU kernels. A program that needs only the registrations must call this too: --as-needed
// makes the linker drop libraries of which nothing is called.
std::string Describe();

// The instruction set of the CPU kernels, "x86-64-v2", "avx2" or "avx512". Sums of floats differ in
// the last bits between them; those of int8 are exact, with VNNI and AMX as well.
std::string InstructionSet();

}  // namespace linnet::ops
