#include "model/torch/encoder/block_encoder.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "model/torch/encoder/encoder_cache.h"
#include "model/torch/module/device_event.h"

namespace linnet::model {
namespace {

int BlocksOf(const EncoderSource& source) { return BlocksFor(std::ssize(source.tokens)); }

}  // namespace

std::vector<int> CallSizes(int max) {
  std::vector<int> sizes;
  for (int size = 1; size < max; size = size % 3 == 0 ? size / 3 * 4 : std::max(2, size / 2 * 3)) {
    sizes.push_back(size);
  }
  sizes.push_back(max);
  return sizes;
}

BlockEncoder::Inputs::Inputs(int64_t blocks, TokenId pad, at::Device device)
    : tokens(at::full({blocks, kBlockTokens}, int64_t{pad},
                      at::TensorOptions(device).dtype(at::kLong))),
      lengths(at::zeros({blocks}, at::TensorOptions(device).dtype(at::kInt))),
      starts(at::zeros({blocks}, at::TensorOptions(device).dtype(at::kInt))),
      blocks(
          at::full({blocks}, int64_t{kPaddingBlock}, at::TensorOptions(device).dtype(at::kLong))) {}

BlockEncoder::BlockEncoder(ScriptedModel& model, const std::vector<at::Tensor>& layers,
                           int source_blocks, TokenId pad, bool time_gemms)
    : model_(model),
      layers_(layers),
      pad_(pad),
      inputs_(std::max(source_blocks, kMaxBlocks), pad, model.device()),
      calls_("an encoder call", "blocks", CallSizes(std::max(source_blocks, kMaxBlocks)),
             time_gemms, [this](int size) { Run(size); }) {}

void BlockEncoder::Encode(std::span<const EncoderSource> sources) {
  while (!sources.empty()) {
    int blocks = 0;
    size_t count = 0;
    for (; count < sources.size(); ++count) {
      const int own = BlocksOf(sources[count]);
      if (count > 0 && blocks + own > calls_.max()) break;
      blocks += own;
    }
    EncodeTogether(sources.first(count), blocks);
    sources = sources.subspan(count);
  }
}

void BlockEncoder::EncodeTogether(std::span<const EncoderSource> sources, int blocks) {
  const int size = calls_.SizeFor(blocks);
  const Inputs host(size, pad_, at::kCPU);
  int64_t row = 0;
  for (const EncoderSource& source : sources) {
    std::copy(source.tokens.begin(), source.tokens.end(),
              host.tokens.mutable_data_ptr<int64_t>() + row * kBlockTokens);
    for (int i = 0; i < BlocksOf(source); ++i, ++row) {
      host.lengths.mutable_data_ptr<int32_t>()[row] = static_cast<int32_t>(source.tokens.size());
      host.starts.mutable_data_ptr<int32_t>()[row] = i * kBlockTokens;
      host.blocks.mutable_data_ptr<int64_t>()[row] = source.blocks[i];
    }
  }
  SendInto(inputs_.tokens, host.tokens);
  SendInto(inputs_.lengths, host.lengths);
  SendInto(inputs_.starts, host.starts);
  SendInto(inputs_.blocks, host.blocks);
  calls_.Launch(size);
}

void BlockEncoder::Run(int size) {
  const at::Tensor blocks = inputs_.blocks.narrow(0, 0, size);
  const std::vector<at::Tensor> encoded =
      model_.EncodeBlocks(inputs_.tokens.narrow(0, 0, size), inputs_.lengths.narrow(0, 0, size),
                          inputs_.starts.narrow(0, 0, size));
  if (encoded.size() != layers_.size()) {
    throw std::runtime_error(absl::StrCat("encode_blocks gives ", encoded.size(),
                                          " tensors, new_encoder_cache gives ", layers_.size()));
  }
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].index_copy_(0, blocks, encoded[layer]);
  }
}

}  // namespace linnet::model
