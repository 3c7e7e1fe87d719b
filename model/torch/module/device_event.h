#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace linnet::model {

// Streams and events, for ordering work on a device without waiting for it on the host. On the CPU
// all calls are synchronous: its only stream is the default one, and every event is reached. Built
// on torch's device-neutral classes, so that this library needs no CUDA headers.

// A stream of the device that no other OwnStream has; an urgent one has a higher priority. torch
// hands out the same 32 in turn, and two engines on one stream would record each other's work into
// their graphs. On the CPU it is the default stream. Throws c10::Error if all are taken.
class OwnStream {
 public:
  OwnStream(at::Device device, bool urgent);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  operator const c10::Stream&() const { return stream_; }

 private:
  c10::Stream stream_;
};
// Zeros in pinned host memory, which the device can copy asynchronously.
at::Tensor PinnedZeros(at::IntArrayRef shape, at::ScalarType type, at::Device device);
// Blocks until the stream has done its work; not the whole device, since that would spoil a graph
// that another engine is recording.
void WaitFor(const c10::Stream& stream);
// Copies a host tensor to the device, asynchronously on the current stream.
at::Tensor SendTo(at::Device device, const at::Tensor& tensor);
// The same into the first rows of a tensor of the device.
void SendInto(const at::Tensor& target, const at::Tensor& tensor);

// A point in the work of a stream (cudaEvent_t on CUDA).
class DeviceEvent {
 public:
  explicit DeviceEvent(at::Device device);

  // Sets the event to the point after all work enqueued on `stream`.
  void Record(const c10::Stream& stream);
  bool reached() const;
  // Blocks the calling thread until the event is reached.
  void Wait() const;
  // Makes work that is enqueued on `stream` from now on wait for the event.
  void Block(const c10::Stream& stream) const;

 private:
  std::optional<c10::Event> event_;
};

}  // namespace linnet::model
