#pragma once

#include <cstdint>

// What crosses from an operator's .cc, the only place that unpacks tensors, to its kernels: plain
// sizes and pointers. The kernels' files include neither ATen nor torch, so they compile in
// seconds.
//
// All arrays are contiguous and of one floating point type unless said otherwise; every size fits.
// The .cc has checked shapes, types and devices; on the CPU it has checked the indices as well.
namespace linnet::ops {

enum class FloatType { kFloat32, kBFloat16, kFloat16 };

// See convolution.h for the formula.
struct ConvolutionParams {
  FloatType type;
  bool dynamic;            // one filter per position (dynamic_conv), or one for all (light_conv)
  const void* x;           // [batch, time, channels]
  const void* weight;      // [batch, time, heads, width] if dynamic, else [heads, width]
  const int32_t* lengths;  // [batch]
  void* y;                 // [batch, time, channels]
  int64_t batch, time, channels, heads, width, padding_left;
};

// See convolution_step.h for the formula.
struct ConvolutionStepParams {
  FloatType type;
  bool dynamic;
  const void* x;             // [rows, channels]
  const void* weight;        // [rows, heads, width] if dynamic, else [heads, width]
  void* window;              // [width, lanes, channels], changed in place
  const int32_t* positions;  // [rows]
  const int32_t* ancestry;   // [rows, ancestry_stride], ancestry_stride >= width
  void* y;                   // [rows, channels]
  int64_t rows, channels, heads, width, lanes, ancestry_stride;
};

// The widest head that the CUDA kernel of source_attention takes.
constexpr int kMaxCudaHeadSize = 256;

// See source_attention.h for the formula.
struct SourceAttentionParams {
  FloatType type;
  const void* query;       // [rows, size]
  const void* memory;      // [memory_blocks, block_tokens, 2, size]
  const int32_t* blocks;   // [rows, row_blocks]
  const int32_t* lengths;  // [rows]
  void* y;                 // [rows, size]
  int64_t rows, size, heads, memory_blocks, block_tokens, row_blocks;
};

// float32 and bfloat16 on the calling thread and torch's intra-op threads.
void ConvolutionCpu(const ConvolutionParams& params);
void ConvolutionStepCpu(const ConvolutionStepParams& params);
void SourceAttentionCpu(const SourceAttentionParams& params);

// Launched on `stream` (a cudaStream_t) of the current device; the caller checks the launch.
// In liblinnet_ops_cuda.
void ConvolutionCuda(const ConvolutionParams& params, void* stream);
void ConvolutionStepCuda(const ConvolutionStepParams& params, void* stream);
void SourceAttentionCuda(const SourceAttentionParams& params, void* stream);

}  // namespace linnet::ops
