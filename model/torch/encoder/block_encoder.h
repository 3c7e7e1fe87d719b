#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/runtime/search/token.h"
#include "model/torch/module/recorded_work.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// A source and the blocks of the encoder cache that hold it.
struct EncoderSource {
  std::vector<TokenId> tokens;
  std::vector<int32_t> blocks;
};

// Encodes sources as they lie in the encoder cache, in blocks of kBlockTokens tokens: one call
// takes a number of blocks, of any sources, padded to the next of a few sizes. Nothing else about
// the sources has a shape, so a GPU launches a call as one graph (RecordedWork) in place of a
// hundred kernels. A token's result depends on its source alone, as far as a gemm's does not depend
// on its number of rows.
//
// EncoderCache owns it; its encoding thread calls it, after Prepare.
class BlockEncoder {
 public:
  // Blocks of the largest call: 4,096 tokens, or the longest source. More are encoded in several.
  static constexpr int kMaxBlocks = 256;

  // Requires model.packs_sources(). `layers` are those of the encoder cache; a source has at most
  // `source_blocks`. `model` must outlive it. Throws c10::Error.
  BlockEncoder(ScriptedModel& model, const std::vector<at::Tensor>& layers, int source_blocks,
               TokenId pad, bool time_gemms);
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // See RecordedWork::Prepare.
  void Prepare(const c10::Stream& stream, const std::string& no_graphs) {
    calls_.Prepare(stream, no_graphs);
  }
  const std::string& graphs() const { return calls_.summary(); }

  // Encodes the sources into their blocks, on the current stream. Throws c10::Error, and
  // std::runtime_error if the module breaks its contract.
  void Encode(std::span<const EncoderSource> sources);

 private:
  // The inputs of a call of N blocks.
  struct Inputs {
    Inputs(int64_t blocks, TokenId pad, at::Device device);
    at::Tensor tokens;   // int64 [N, kBlockTokens]
    at::Tensor lengths;  // int32 [N]: ops/first_position.h
    at::Tensor starts;   // int32 [N]
    at::Tensor blocks;   // int64 [N], of the encoder cache
  };
  void EncodeTogether(std::span<const EncoderSource> sources, int blocks);
  void Run(int size);

  ScriptedModel& model_;
  const std::vector<at::Tensor> layers_;
  TokenId pad_;
  Inputs inputs_;  // on the device, of the largest size; smaller calls use their first rows
  RecordedWork calls_;
};

// The sizes of calls, in blocks: 1, 2, 3, 4, 6, 8, 12, 16, … and `max` as the last one.
std::vector<int> CallSizes(int max);

}  // namespace linnet::model
