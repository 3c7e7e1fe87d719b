#include "model/torch/encoder/encoder_call.h"

#include <chrono>
#include <exception>
#include <utility>

#include "model/runtime/engine.h"
#include "model/torch/module/catch_torch_errors.h"

namespace linnet::model {

void EncoderCall::Finish(std::vector<absl::Status> statuses, const c10::Stream& stream) {
  try {
    written_.Record(stream);
  } catch (const std::exception& error) {
    const absl::Status why = StatusOfException("encoding failed", error);
    for (absl::Status& status : statuses) {
      if (!IsDeviceLost(status)) status = why;
    }
  }
  promise_.set_value(std::move(statuses));
}

bool EncoderCall::done() const {
  return statuses_.wait_for(std::chrono::seconds(0)) == std::future_status::ready &&
         written_.reached();
}

void EncoderCall::Wait() const {
  statuses_.wait();
  written_.Wait();
}

void EncoderCall::Block(const c10::Stream& stream) const {
  statuses_.wait();
  written_.Block(stream);
}

absl::Status EncodedSource::Take() {
  absl::Status status = call->status(index);
  call = nullptr;
  return status;
}

}  // namespace linnet::model
