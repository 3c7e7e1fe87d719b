#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace linnet::model {

// Order on a device without waiting for it. On the CPU all has happened when a call returns: its
// only stream is the default one, and every mark is reached. Made of torch's device-neutral parts,
// so that this library needs no header of CUDA.

// A stream of its own; an urgent one goes before others where both could run.
c10::Stream NewStream(at::Device device, bool urgent);
// Host memory that copies to and from the device without a detour, zeroed.
at::Tensor PinnedZeros(at::IntArrayRef shape, at::ScalarType type, at::Device device);
// The host's tensor on the device, by a copy that the current stream makes when its turn comes.
at::Tensor SendTo(at::Device device, const at::Tensor& tensor);

// A point in the work of a stream.
class Mark {
 public:
  explicit Mark(at::Device device);

  // Behind all that the stream has been given.
  void Set(const c10::Stream& stream);
  bool reached() const;
  void Wait() const;
  // What the stream is given from now on waits for the mark.
  void HoldBack(const c10::Stream& stream) const;

 private:
  std::optional<c10::Event> event_;
};

}  // namespace linnet::model
