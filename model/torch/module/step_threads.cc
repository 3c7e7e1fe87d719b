#include "model/torch/module/step_threads.h"

#include <ATen/Parallel.h>

namespace linnet::model {
namespace {

// In multiply-adds of float32; int8 counts a quarter, as in ops/cpu/packed_linear.h. The step of
// en-pt with its shortlist is 0.6 million in int8 and 2.4 with a beam of 4, which two threads
// compute in three quarters of the time; that of a base model is 9. 128 million are 80 source
// tokens of en-pt in int8, about 6 ms.
constexpr int64_t kOneThreadStep = 1'500'000;
constexpr int64_t kOneThreadEncoderCall = 128'000'000;

// The gemms of a layer: about four between vectors of the model, and two of the feed-forward part.
int64_t LayerWork(const linnet::v1::Architecture& architecture) {
  const int64_t dimension = architecture.model_dimension();
  return 4 * dimension * dimension + 2 * dimension * architecture.feed_forward_dimension();
}

}  // namespace

StepThreads::StepThreads(const linnet::v1::Architecture& architecture, bool int8, int threads)
    : threads_(threads),
      dimension_(architecture.model_dimension()),
      cost_(int8 ? 1 : 4),
      decoder_(LayerWork(architecture) * architecture.decoder_mixers_size()),
      encoder_(LayerWork(architecture) * architecture.encoder_mixers_size()) {}

int StepThreads::OfStep(int64_t rows, int64_t outputs) const {
  if (decoder_ == 0) return threads_;
  const int64_t work = (rows * decoder_ + outputs * dimension_) * cost_ / 4;
  return work <= kOneThreadStep ? 1 : threads_;
}

int StepThreads::OfEncoderCall(int64_t tokens, int64_t rows, int64_t outputs) const {
  return tokens * encoder_ * cost_ / 4 <= kOneThreadEncoderCall ? OfStep(rows, outputs) : threads_;
}

ThreadScope::ThreadScope(int threads, int before) : threads_(threads), before_(before) {
  if (threads_ != before_) at::set_num_threads(threads_);
}

ThreadScope::~ThreadScope() {
  if (threads_ != before_) at::set_num_threads(before_);
}

}  // namespace linnet::model
