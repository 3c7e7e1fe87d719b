#pragma once

#include <c10/core/Stream.h>

#include <future>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "model/torch/module/device_event.h"

namespace linnet::model {

// A call of the encoder that may run on another thread and on another stream.
//
// The thread of the encoder ends it once, with Finish; the engine's thread asks for the results.
class EncoderCall {
 public:
  explicit EncoderCall(at::Device device) : written_(device), statuses_(promise_.get_future()) {}

  // Everything is enqueued on `stream`; a status for each source.
  void Finish(std::vector<absl::Status> statuses, const c10::Stream& stream);

  // True once the keys and values are in their blocks.
  bool done() const;
  // Waits until everything is enqueued, and makes later work on `stream` wait for the device.
  void Block(const c10::Stream& stream) const;
  // Waits until done().
  void Wait() const;
  // Requires done(), or a Block or Wait before.
  const absl::Status& status(int source) const { return statuses_.get()[source]; }

 private:
  DeviceEvent written_;
  std::promise<std::vector<absl::Status>> promise_;
  std::shared_future<std::vector<absl::Status>> statuses_;
};

// A source of a call; empty once the engine has seen that it is encoded.
struct EncodedSource {
  std::shared_ptr<const EncoderCall> call;
  int index = 0;

  bool pending() const { return call != nullptr; }
  // Returns how it ended, and becomes empty.
  absl::Status Take();
};

}  // namespace linnet::model
