#pragma once

#include <string>

// The operators of liblinnet_ops, `torch.ops.linnet.*`:
//
//   dynamic_conv, light_conv             convolution.h
//   dynamic_conv_step, light_conv_step   convolution_step.h
//   depthwise_conv                       depthwise_conv.h
//   depthwise_conv_step                  depthwise_conv_step.h
//   linear, pack_linear                  linear.h
//   add_norm                             add_norm.h
//   best_logits                          best_logits.h
//   beam_inputs, beam_step               beam_search.h
//   self_attention_step                  self_attention_step.h
//   source_attention                     source_attention.h
//
// Loading the library registers them: torch::jit::load() then finds them in a scripted module, and
// Python after torch.ops.load_library(). liblinnet_ops_cuda adds the CUDA kernels in the same way.
namespace linnet::ops {

// One line for the log: which operators have kernels for which device, and the instruction set that
// the CPU kernels run on. A program that only wants the registrations calls this as well: a linker
// that drops libraries of which nothing is called (--as-needed) then keeps this one.
std::string Describe();

}  // namespace linnet::ops
