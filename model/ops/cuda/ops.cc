// Registers the CUDA kernels: liblinnet_ops_cuda.so, loaded beside liblinnet_ops.so on a CUDA
// device.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "model/ops/add_norm.h"
#include "model/ops/convolution/convolution.h"
#include "model/ops/convolution/convolution_step.h"
#include "model/ops/convolution/depthwise_conv.h"
#include "model/ops/convolution/depthwise_conv_step.h"
#include "model/ops/convolution/gated_conv_step.h"
#include "model/ops/embed.h"
#include "model/ops/params.h"
#include "model/ops/search/beam_search.h"
#include "model/ops/self_attention.h"
#include "model/ops/self_attention_step.h"
#include "model/ops/source_attention.h"
#include "model/ops/ssru_step.h"

namespace linnet::ops {
namespace {

// Adapts a CUDA kernel for the operators' .cc files: launches on torch's current stream and checks
// the launch.
template <class Params, void (*Launch)(const Params&, void*)>
void OnCurrentStream(const Params& params) {
  Launch(params, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

constexpr auto kAddNorm = OnCurrentStream<AddNormParams, AddNormCuda>;
constexpr auto kBeamInputs = OnCurrentStream<BeamInputsParams, BeamInputsCuda>;
constexpr auto kBeamStep = OnCurrentStream<BeamStepParams, BeamStepCuda>;
constexpr auto kConvolution = OnCurrentStream<ConvolutionParams, ConvolutionCuda>;
constexpr auto kConvolutionStep = OnCurrentStream<ConvolutionStepParams, ConvolutionStepCuda>;
constexpr auto kDepthwiseConv = OnCurrentStream<DepthwiseConvParams, DepthwiseConvCuda>;
constexpr auto kDepthwiseConvStep = OnCurrentStream<DepthwiseConvStepParams, DepthwiseConvStepCuda>;
constexpr auto kEmbed = OnCurrentStream<EmbedParams, EmbedCuda>;
constexpr auto kGatedConvStep = OnCurrentStream<GatedConvStepParams, GatedConvStepCuda>;
constexpr auto kSelfAttention = OnCurrentStream<SelfAttentionParams, SelfAttentionCuda>;
constexpr auto kSelfAttentionStep = OnCurrentStream<SelfAttentionStepParams, SelfAttentionStepCuda>;
constexpr auto kSourceAttention = OnCurrentStream<SourceAttentionParams, SourceAttentionCuda>;
constexpr auto kSsruStep = OnCurrentStream<SsruStepParams, SsruStepCuda>;

at::Tensor AddNormCudaOp(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                         const at::Tensor& bias, double epsilon) {
  const c10::cuda::CUDAGuard guard(x.device());
  return AddNorm(x, residual, weight, bias, epsilon, kAddNorm);
}

SumAndNorm AddNormSumCudaOp(const at::Tensor& x, const at::Tensor& residual,
                            const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const c10::cuda::CUDAGuard guard(x.device());
  return AddNormSum(x, residual, weight, bias, epsilon, kAddNorm);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> BeamInputsCudaOp(
    const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special, int64_t row_blocks) {
  const c10::cuda::CUDAGuard guard(plan.device());
  const StepRows rows = BeamInputs(plan, tables, special, row_blocks, kBeamInputs);
  return {rows.tokens, rows.positions, rows.backpointers, rows.blocks, rows.source_lengths};
}

void BeamStepCudaOp(const at::Tensor& plan, const at::Tensor& logits,
                    const at::Tensor& backpointers, at::TensorList tables, at::IntArrayRef special,
                    at::TensorList grammar, at::Tensor& record) {
  const c10::cuda::CUDAGuard guard(plan.device());
  BeamStep(plan, logits, backpointers, tables, special, grammar, record, kBeamStep);
}

at::Tensor DynamicConvCuda(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                           int64_t padding_left, const std::optional<at::Tensor>& starts) {
  const c10::cuda::CUDAGuard guard(x.device());
  return DynamicConv(x, weight, lengths, padding_left, starts, kConvolution);
}

at::Tensor LightConvCuda(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                         int64_t padding_left, const std::optional<at::Tensor>& starts) {
  const c10::cuda::CUDAGuard guard(x.device());
  return LightConv(x, weight, lengths, padding_left, starts, kConvolution);
}

at::Tensor DynamicConvStepCuda(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                               const at::Tensor& positions, const at::Tensor& backpointers) {
  const c10::cuda::CUDAGuard guard(x.device());
  return DynamicConvStep(x, weight, state, positions, backpointers, kConvolutionStep);
}

at::Tensor LightConvStepCuda(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                             const at::Tensor& positions, const at::Tensor& backpointers) {
  const c10::cuda::CUDAGuard guard(x.device());
  return LightConvStep(x, weight, state, positions, backpointers, kConvolutionStep);
}

at::Tensor DepthwiseConvCudaOp(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& lengths, int64_t padding_left, int64_t dilation,
                               const std::optional<at::Tensor>& starts) {
  const c10::cuda::CUDAGuard guard(x.device());
  return DepthwiseConv(x, weight, lengths, padding_left, dilation, starts, kDepthwiseConv);
}

at::Tensor DepthwiseConvStepCudaOp(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                                   const at::Tensor& positions, const at::Tensor& backpointers,
                                   int64_t dilation) {
  const c10::cuda::CUDAGuard guard(x.device());
  return DepthwiseConvStep(x, weight, state, positions, backpointers, dilation, kDepthwiseConvStep);
}

at::Tensor EmbedTokensCudaOp(const at::Tensor& tokens, const at::Tensor& positions,
                             const at::Tensor& table,
                             const std::optional<at::Tensor>& position_table, double scale,
                             int64_t first_position, double sinusoid_steps) {
  const c10::cuda::CUDAGuard guard(table.device());
  return EmbedTokens(tokens, positions, table,
                     {position_table, scale, first_position, sinusoid_steps}, kEmbed);
}

at::Tensor GatedConvStepCudaOp(const at::Tensor& z, const at::Tensor& taps_weight, int64_t heads,
                               at::Tensor& state, const at::Tensor& positions,
                               const at::Tensor& backpointers) {
  const c10::cuda::CUDAGuard guard(z.device());
  return GatedConvStep(z, taps_weight, heads, state, positions, backpointers, kGatedConvStep);
}

at::Tensor SelfAttentionCudaOp(const at::Tensor& query_key_value, const at::Tensor& lengths,
                               int64_t heads, const std::optional<at::Tensor>& starts) {
  const c10::cuda::CUDAGuard guard(query_key_value.device());
  return SelfAttention(query_key_value, lengths, heads, starts, kSelfAttention);
}

at::Tensor SelfAttentionStepCudaOp(const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value, at::Tensor& cache,
                                   const at::Tensor& positions, const at::Tensor& backpointers,
                                   int64_t heads, int64_t neighbour_heads) {
  const c10::cuda::CUDAGuard guard(query.device());
  return SelfAttentionStep(query, key, value, cache, positions, backpointers, heads,
                           neighbour_heads, kSelfAttentionStep);
}

at::Tensor SourceAttentionCudaOp(const at::Tensor& query, const at::Tensor& encoder_cache,
                                 const at::Tensor& blocks, const at::Tensor& lengths,
                                 int64_t heads) {
  const c10::cuda::CUDAGuard guard(query.device());
  return SourceAttention(query, encoder_cache, blocks, lengths, heads, kSourceAttention);
}

at::Tensor SsruStepCudaOp(const at::Tensor& projected, at::Tensor& state,
                          const at::Tensor& positions, const at::Tensor& backpointers) {
  const c10::cuda::CUDAGuard guard(projected.device());
  return SsruStep(projected, state, positions, backpointers, kSsruStep);
}

}  // namespace

TORCH_LIBRARY_IMPL(linnet, CUDA, m) {
  m.impl("add_norm", AddNormCudaOp);
  m.impl("add_norm_sum", AddNormSumCudaOp);
  m.impl("beam_inputs", BeamInputsCudaOp);
  m.impl("beam_step", BeamStepCudaOp);
  m.impl("dynamic_conv", DynamicConvCuda);
  m.impl("light_conv", LightConvCuda);
  m.impl("dynamic_conv_step", DynamicConvStepCuda);
  m.impl("light_conv_step", LightConvStepCuda);
  m.impl("depthwise_conv", DepthwiseConvCudaOp);
  m.impl("depthwise_conv_step", DepthwiseConvStepCudaOp);
  m.impl("embed_tokens", EmbedTokensCudaOp);
  m.impl("gated_conv_step", GatedConvStepCudaOp);
  m.impl("self_attention", SelfAttentionCudaOp);
  m.impl("self_attention_step", SelfAttentionStepCudaOp);
  m.impl("source_attention", SourceAttentionCudaOp);
  m.impl("ssru_step", SsruStepCudaOp);
}

}  // namespace linnet::ops
