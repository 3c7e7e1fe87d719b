#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"
#include "model/torch/decoding/free_list.h"
#include "model/torch/module/device_event.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// Tokens in a block of the encoder cache. A source wastes half a block on average.
inline constexpr int kBlockTokens = 16;

// Blocks that a source takes.
int BlocksFor(int64_t tokens);

// The encoder cache: keys and values of the encoder for the running sources, per decoder layer.
//
// A source takes blocks of kBlockTokens tokens, which need not be neighbours, and gives them back
// when its lease ends. Blocks are not cleared: a decoder step reads the tokens of its source only.
// On a GPU the encoder can run on a stream of its own, beside the decoder.
//
// ScriptedEngine owns it; not thread-safe, the engine's thread calls it.
class EncoderCache {
 public:
  // A source and the blocks that hold it.
  struct Source {
    std::span<const TokenId> tokens;
    std::span<const int32_t> blocks;
  };

  // `tokens` is a multiple of kBlockTokens. `model` must outlive it. Throws c10::Error.
  EncoderCache(ScriptedModel& model, int64_t tokens, TokenId pad);

  // Gives the encoder a stream of its own. Call it before the first Encode.
  void UseOwnStream();
  const c10::Stream& stream() const { return stream_; }

  int free_blocks() const { return blocks_.free(); }
  // Requires BlocksFor(tokens) <= free_blocks().
  FreeList::Lease Take(int64_t tokens) { return blocks_.Take(BlocksFor(tokens)); }

  // Encodes the sources, as one batch or one by one, into their blocks. Returns at once; the event
  // is reached when the blocks are written. Throws c10::Error, and std::runtime_error if the module
  // breaks its contract.
  std::shared_ptr<DeviceEvent> Encode(std::span<const Source> sources, bool one_by_one);

  // Per layer, [blocks + 1, kBlockTokens, 2, d]; the last block takes the padding.
  const std::vector<at::Tensor>& layers() const { return layers_; }

 private:
  void EncodeBatch(std::span<const Source> sources);

  ScriptedModel& model_;
  TokenId pad_;
  FreeList blocks_;
  std::vector<at::Tensor> layers_;
  c10::Stream stream_;
};

}  // namespace linnet::model
