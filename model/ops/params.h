#pragma once

#include <cstdint>

// Parameters of the kernels: plain sizes and pointers. Only an operator's .cc unpacks tensors; the
// kernels' files include neither ATen nor torch, so they compile in seconds.
//
// All arrays are contiguous and of one floating point type unless noted otherwise. The .cc has
// checked shapes, types and devices; on the CPU it has checked the indices as well.
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
  const int32_t* starts = nullptr;  // [batch] or null: see FirstPosition
};

// See depthwise_conv.h for the formula.
struct DepthwiseConvParams {
  FloatType type;
  const void* x;           // [batch, time, channels]
  const void* taps;        // [width, channels]: the operator's weight, transposed
  const int32_t* lengths;  // [batch]
  void* y;                 // [batch, time, channels]
  int64_t batch, time, channels, width, padding_left, dilation;
  const int32_t* starts = nullptr;  // [batch] or null: see FirstPosition
};

// Decoder state of one layer: the entries of the last `depth` positions of every hypothesis, by
// position modulo depth and by slot (convolution_step.h). A row's entry of j steps ago is
// data[(positions[row] - j) % depth, backpointers[row, j]], for j < depth and j <= positions[row].
struct Ring {
  void* data;                   // [depth, slots, size], changed in place
  const int32_t* positions;     // [rows]
  const int32_t* backpointers;  // [rows, backpointers_stride], backpointers_stride >= depth
  int64_t depth, slots, size, backpointers_stride;
};

// See convolution_step.h for the formula.
struct ConvolutionStepParams {
  FloatType type;
  bool dynamic;
  const void* x;       // [rows, channels]
  const void* weight;  // [rows, heads, width] if dynamic, else [heads, width]
  Ring state;          // depth = width, size = channels
  void* y;             // [rows, channels]
  int64_t rows, channels, heads, width;
};

// See depthwise_conv_step.h for the formula.
struct DepthwiseConvStepParams {
  FloatType type;
  const void* x;     // [rows, channels]
  const void* taps;  // [width, channels]: the operator's weight, transposed
  Ring state;        // depth = (width - 1) * dilation + 1, size = channels
  void* y;           // [rows, channels]
  int64_t rows, channels, width, dilation;
};

// Shared memory that a CUDA block may use on every device without opting in to more.
constexpr int64_t kCudaSharedBytes = 48 * 1024;

// Max channels per head in the CUDA kernels of attention.
constexpr int kMaxCudaHeadSize = 256;

// See source_attention.h for the formula.
struct SourceAttentionParams {
  FloatType type;
  const void* query;          // [rows, size]
  const void* encoder_cache;  // [cache_blocks, block_tokens, 2, size]
  const int32_t* blocks;      // [rows, row_blocks]
  const int32_t* lengths;     // [rows]
  void* y;                    // [rows, size]
  int64_t rows, size, heads, cache_blocks, block_tokens, row_blocks;
};

// See self_attention.h for the formula.
struct SelfAttentionParams {
  FloatType type;
  const void* query_key_value;  // [batch, time, 3, size]
  const int32_t* lengths;       // [batch]
  void* y;                      // [batch, time, size]
  int64_t batch, time, size, heads;
  const int32_t* starts = nullptr;  // [batch] or null: see FirstPosition
};

// See self_attention_step.h for the formula.
struct SelfAttentionStepParams {
  FloatType type;
  const void* query;  // [rows, size]
  const void* key;    // [rows, size]
  const void* value;  // [rows, size]
  Ring cache;         // an entry is a key followed by its value: its size is 2 * size
  void* y;            // [rows, size]
  int64_t rows, size, heads, neighbour_heads;
};

// See ssru_step.h for the formula.
struct SsruStepParams {
  FloatType type;         // of projected and y
  const void* projected;  // [rows, 2 * channels]: candidates, then gates before the sigmoid
  Ring state;             // of float32 for every type: depth = 2, size = channels
  void* y;                // [rows, channels]
  int64_t rows, channels;
};

// See add_norm.h for the formula.
struct AddNormParams {
  FloatType type;
  const void* x;         // [rows, channels]
  const void* residual;  // [rows, channels]
  const void* weight;    // [channels]
  const void* bias;      // [channels]
  void* sum;             // [rows, channels] or null
  void* y;               // [rows, channels]
  int64_t rows, channels;
  float epsilon;
};

// See embed.h for the formula.
struct EmbedParams {
  FloatType type;
  const int64_t* tokens;       // [rows]
  const int32_t* positions;    // [rows]
  const void* table;           // [vocabulary, channels]
  const void* position_table;  // [max_positions, channels] or null
  void* y;                     // [rows, channels]
  int64_t rows, channels, vocabulary, max_positions, first_position;
  float scale;
  bool sinusoids;
  float log_frequency_step;  // frequency i is its exponential to the power of i
};

// See gated_conv_step.h for the formula.
struct GatedConvStepParams {
  FloatType type;
  bool gated;
  const void* z;            // [rows, channels], if gated [rows, 2 * channels]
  const void* taps_weight;  // [heads * width, channels]
  Ring state;               // depth = width, size = channels
  void* y;                  // [rows, channels]
  int64_t rows, channels, heads, width;
};

// Shared memory that a block of the CUDA kernel needs: offsets, taps and inputs.
constexpr int64_t GatedConvStepBytes(int64_t channels, int64_t width) {
  return width * int64_t{sizeof(int64_t) + sizeof(float)} + channels * int64_t{sizeof(float)};
}
constexpr bool GatedConvStepFits(int64_t channels, int64_t width) {
  return GatedConvStepBytes(channels, width) <= kCudaSharedBytes;
}

class PackedMatrix;

enum class Activation { kNone, kRelu, kSwish, kGelu, kGlu };

// See linear.h for the formula; float32 only.
struct LinearParams {
  const PackedMatrix* weight;
  const float* x;     // [rows, inputs]
  const float* bias;  // [outputs] or null
  Activation activation;
  const float* residual;     // [rows, width] or null
  const float* norm_weight;  // [width] or null, like norm_bias
  const float* norm_bias;
  float norm_epsilon;
  float* y;  // [rows, width]; width = outputs, half of them for glu
  int64_t rows, width;
};

// See best_logits.h for the formula.
struct BestLogitsParams {
  const PackedMatrix* weight;  // or null:
  const float* given;          // [rows, tokens], precomputed logits
  const float* x;              // [rows, inputs]
  const float* bias;           // [tokens] or null
  const int32_t* counts;       // [rows]
  const int32_t* also;         // [rows]
  const float* temperatures;   // [rows]
  float* logits;               // [rows, width], width = largest count + 1
  int32_t* found;              // [rows, width]: the tokens
  float* log_normalizers;      // [rows]
  int64_t rows, tokens, width;
};

// They run on the calling thread and torch's intra-op threads.
void LinearCpu(const LinearParams& params);
void BestLogitsCpu(const BestLogitsParams& params);

// For float32 and bfloat16. They run on the calling thread and torch's intra-op threads.
void AddNormCpu(const AddNormParams& params);
void ConvolutionCpu(const ConvolutionParams& params);
void ConvolutionStepCpu(const ConvolutionStepParams& params);
void DepthwiseConvCpu(const DepthwiseConvParams& params);
void DepthwiseConvStepCpu(const DepthwiseConvStepParams& params);
void GatedConvStepCpu(const GatedConvStepParams& params);
void SelfAttentionCpu(const SelfAttentionParams& params);
void SelfAttentionStepCpu(const SelfAttentionStepParams& params);
void SourceAttentionCpu(const SourceAttentionParams& params);
// Adds the weights to `weights` [rows, row_blocks * block_tokens]; params.y is not used.
void SourceAttentionWeightsCpu(const SourceAttentionParams& params, int64_t head, float* weights);
void SsruStepCpu(const SsruStepParams& params);

// Launch on `stream` (a cudaStream_t) of the current device; the caller checks the launch.
// Defined in liblinnet_ops_cuda.
void AddNormCuda(const AddNormParams& params, void* stream);
void ConvolutionCuda(const ConvolutionParams& params, void* stream);
void ConvolutionStepCuda(const ConvolutionStepParams& params, void* stream);
void DepthwiseConvCuda(const DepthwiseConvParams& params, void* stream);
void DepthwiseConvStepCuda(const DepthwiseConvStepParams& params, void* stream);
void EmbedCuda(const EmbedParams& params, void* stream);
void GatedConvStepCuda(const GatedConvStepParams& params, void* stream);
void SelfAttentionCuda(const SelfAttentionParams& params, void* stream);
void SelfAttentionStepCuda(const SelfAttentionStepParams& params, void* stream);
void SourceAttentionCuda(const SourceAttentionParams& params, void* stream);
void SsruStepCuda(const SsruStepParams& params, void* stream);

}  // namespace linnet::ops
