#include "model/torch/encoder/encoder_cache.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/torch/module/catch_torch_errors.h"

namespace linnet::model {
namespace {

// Sources are padded to a multiple of this, for libraries whose gemms give the same bits for such
// numbers of rows only (host_decoder.cc).
constexpr size_t kSourceGrain = 8;

// Tokens that each thread of a CPU encodes at once. More would make nothing faster, and the
// C library keeps the memory of their keys and values, which a call returns for all layers at once.
constexpr size_t kTokensOfThread = 128;

size_t LongestSource(std::span<const EncoderCache::Source> sources) {
  size_t longest = 0;
  for (const auto& source : sources) longest = std::max(longest, source.tokens.size());
  return longest;
}

// Sources of an encoder call that are encoded at once. Elsewhere than with packed weights the bits
// of an answer depend on it.
size_t MaxTogether(const ScriptedModel& model, std::span<const EncoderCache::Source> sources) {
  if (!model.packed()) return sources.size();
  const size_t tokens = kTokensOfThread * at::get_num_threads();
  return std::max<size_t>(1, tokens / std::max<size_t>(1, LongestSource(sources)));
}

}  // namespace

int BlocksFor(int64_t tokens) {
  return static_cast<int>((tokens + kBlockTokens - 1) / kBlockTokens);
}

EncoderCache::EncoderCache(ScriptedModel& model, int64_t tokens, int max_source_tokens, TokenId pad)
    : model_(model),
      max_source_tokens_(max_source_tokens),
      pad_(pad),
      blocks_(BlocksFor(tokens), kPaddingBlock + 1),
      layers_(model_.NewEncoderCache(blocks_.size() + 1, kBlockTokens)),
      stream_(c10::Stream::DEFAULT, model_.device()) {}

EncoderCache::~EncoderCache() {
  thread_ = nullptr;
  try {  // the device writes to the layers until it has finished
    DeviceEvent last(model_.device());
    last.Record(stream_);
    last.Wait();
  } catch (const std::exception&) {
    // A failed device writes nothing more.
  }
}

void EncoderCache::RunBeside(int threads) {
  own_stream_ = std::make_unique<OwnStream>(model_.device(), /*urgent=*/false);
  stream_ = *own_stream_;
  thread_ = std::make_unique<JobThread>();
  thread_->Add([threads] { at::set_num_threads(threads); });
}

void EncoderCache::EncodeInBlocks(bool time_gemms, const std::string& no_graphs) {
  if (!model_.packs_sources()) return;
  in_blocks_ = std::make_unique<BlockEncoder>(
      model_, layers_, BlocksFor(static_cast<int64_t>(max_source_tokens_)), pad_, time_gemms);
  // Its tensors and the layers were made on the stream of this thread.
  WaitFor(c10::impl::VirtualGuardImpl(model_.device().type()).getStream(model_.device()));
  in_blocks_->Prepare(stream_, no_graphs);
}

std::string EncoderCache::graphs() const {
  return in_blocks_ == nullptr ? "no graphs: this model's sources are padded"
                               : in_blocks_->graphs();
}

std::shared_ptr<const EncoderCall> EncoderCache::Encode(std::vector<Source> sources,
                                                        bool one_by_one) {
  auto call = std::make_shared<EncoderCall>(model_.device());
  std::vector<absl::Status> statuses(sources.size());
  const size_t together = one_by_one ? 1 : MaxTogether(model_, sources);
  if (thread_ == nullptr) {
    const std::span<const Source> all = sources;
    for (size_t i = 0; i < all.size(); i += together) {
      EncodeBatch(all.subspan(i, std::min(together, all.size() - i)));
    }
    call->Finish(std::move(statuses), stream_);
    return call;
  }
  thread_->Add([this, call, together, sources = std::move(sources),
                statuses = std::move(statuses)]() mutable {
    const std::span<const Source> all = sources;
    for (size_t i = 0; i < all.size(); i += together) {
      const size_t count = std::min(together, all.size() - i);
      EncodeInParts(all.subspan(i, count), std::span(statuses).subspan(i, count));
    }
    call->Finish(std::move(statuses), stream_);
  });
  last_ = call;
  return call;
}

bool EncoderCache::encoding() const {
  try {
    return last_ != nullptr && !last_->done();
  } catch (const std::exception&) {
    return false;
  }
}

void EncoderCache::EncodeInParts(std::span<const Source> sources,
                                 std::span<absl::Status> statuses) {
  const absl::Status status = CatchTorchErrors("encoding failed", [&] {
    EncodeBatch(sources);
    return absl::OkStatus();
  });
  if (absl::IsResourceExhausted(status) && sources.size() > 1) {
    const size_t half = sources.size() / 2;
    EncodeInParts(sources.first(half), statuses.first(half));
    EncodeInParts(sources.subspan(half), statuses.subspan(half));
    return;
  }
  std::ranges::fill(statuses, status);
}

void EncoderCache::EncodeBatch(std::span<const Source> sources) {
  const c10::StreamGuard guard(stream_);
  if (in_blocks_ != nullptr) return in_blocks_->Encode(sources);
  const size_t longest = LongestSource(sources);
  const int64_t batch = std::ssize(sources);
  const size_t rounded = (longest + kSourceGrain - 1) / kSourceGrain * kSourceGrain;
  // A table of learned positions may have no row beyond the longest source.
  const auto width = static_cast<int64_t>(std::min(rounded, std::max(longest, max_source_tokens_)));
  at::Tensor source = at::full({batch, width}, int64_t{pad_}, at::kLong);
  at::Tensor lengths = at::empty({batch}, at::kInt);
  at::Tensor places = at::full({batch, width}, int64_t{kPaddingBlock} * kBlockTokens, at::kLong);
  for (int64_t b = 0; b < batch; ++b) {
    const auto& [tokens, blocks] = sources[b];
    std::copy(tokens.begin(), tokens.end(), source.mutable_data_ptr<int64_t>() + b * width);
    lengths.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(tokens.size());
    int64_t* place = places.mutable_data_ptr<int64_t>() + b * width;
    for (size_t s = 0; s < tokens.size(); ++s) {
      place[s] = int64_t{blocks[s / kBlockTokens]} * kBlockTokens + s % kBlockTokens;
    }
  }
  const std::vector<at::Tensor> encoded =
      model_.Encode(SendTo(model_.device(), source), SendTo(model_.device(), lengths));
  if (encoded.size() != layers_.size()) {
    throw std::runtime_error(absl::StrCat("encode gives ", encoded.size(),
                                          " tensors, new_encoder_cache gives ", layers_.size()));
  }
  places = SendTo(model_.device(), places.flatten());
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].flatten(0, 1).index_copy_(0, places, encoded[layer].flatten(0, 1));
  }
}

}  // namespace linnet::model
