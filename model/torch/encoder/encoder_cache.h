#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/runtime/search/token.h"
#include "model/torch/encoder/block_encoder.h"
#include "model/torch/encoder/encoder_call.h"
#include "model/torch/encoder/free_list.h"
#include "model/torch/module/device_event.h"
#include "model/torch/module/job_thread.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// Tokens in a block of the encoder cache. A source wastes half a block on average.
inline constexpr int kBlockTokens = 16;
// The block that takes the padding. It is the first one, so that it shares its pages with the
// blocks that are used first.
inline constexpr int kPaddingBlock = 0;

// Blocks that a source takes.
int BlocksFor(int64_t tokens);

// The encoder cache: keys and values of the encoder for the running sources, per decoder layer.
//
// A source takes blocks of kBlockTokens tokens, which need not be neighbours, and gives them back
// when its lease ends. Blocks are not cleared: a decoder step reads the tokens of its source only.
// The encoder can run beside the decoder, on a thread and a stream of its own: launching its
// hundred kernels takes the host longer than several decoder steps.
//
// ScriptedEngine owns it; not thread-safe, the engine's thread calls it.
class EncoderCache {
 public:
  using Source = EncoderSource;

  // `tokens` is a multiple of kBlockTokens; sources have at most `max_source_tokens`. `model` must
  // outlive it. Throws c10::Error.
  EncoderCache(ScriptedModel& model, int64_t tokens, int max_source_tokens, TokenId pad);
  // Ends the thread; calls that have not begun are dropped.
  ~EncoderCache();
  EncoderCache(const EncoderCache&) = delete;
  EncoderCache& operator=(const EncoderCache&) = delete;

  // Gives the encoder a thread, with `threads` intra-op threads, and a stream of its own. Call it
  // before the first Encode.
  void RunBeside(int threads);
  // Encodes the sources of a call as blocks from now on, if the model can (block_encoder.h). Call
  // it before the first Encode. Throws as BlockEncoder::Prepare.
  void EncodeInBlocks(bool time_gemms, const std::string& no_graphs);
  // "16 graphs", or the reason why there are none.
  std::string graphs() const;
  const c10::Stream& stream() const { return stream_; }

  int free_blocks() const { return blocks_.free(); }
  // Requires BlocksFor(tokens) <= free_blocks().
  FreeList::Lease Take(int64_t tokens) { return blocks_.Take(BlocksFor(tokens)); }

  // Encodes the sources, as one batch or one by one, into their blocks, after those of earlier
  // calls. Throws c10::Error, and std::runtime_error if the module breaks its contract.
  //
  // On a thread of its own it returns at once and never throws: each source gets a status, and
  // batches that do not fit into memory are encoded in parts.
  std::shared_ptr<const EncoderCall> Encode(std::vector<Source> sources, bool one_by_one);

  // True while a call on the encoder's thread has not ended. False for a device that has
  // failed; the next step reports it.
  bool encoding() const;

  // Per layer, [blocks + 1, kBlockTokens, 2, d]; kPaddingBlock takes the padding.
  const std::vector<at::Tensor>& layers() const { return layers_; }

 private:
  void EncodeBatch(std::span<const Source> sources);
  // Encodes them together, or in halves if memory runs out.
  void EncodeInParts(std::span<const Source> sources, std::span<absl::Status> statuses);

  ScriptedModel& model_;
  size_t max_source_tokens_;
  TokenId pad_;
  FreeList blocks_;
  std::vector<at::Tensor> layers_;
  std::unique_ptr<BlockEncoder> in_blocks_;  // null: sources are padded to the longest
  std::unique_ptr<OwnStream> own_stream_;    // null: Encode runs on the caller's
  c10::Stream stream_;
  std::unique_ptr<JobThread> thread_;        // null: Encode runs on the caller's thread
  std::shared_ptr<const EncoderCall> last_;  // on the thread, which runs the calls in order
};

}  // namespace linnet::model
