#include "model/torch/module/device_event.h"

#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace linnet::model {

c10::Stream NewStream(at::Device device, bool urgent) {
  if (device.is_cpu()) return c10::Stream(c10::Stream::DEFAULT, device);
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, urgent);
}

at::Tensor PinnedZeros(at::IntArrayRef shape, at::ScalarType type, at::Device device) {
  const at::Tensor zeros = at::zeros(shape, type);
  return device.is_cpu() ? zeros : zeros.pin_memory();
}

at::Tensor SendTo(at::Device device, const at::Tensor& tensor) {
  if (device.is_cpu()) return tensor;
  // The pinned-memory allocator keeps the buffer until the copy is done.
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

DeviceEvent::DeviceEvent(at::Device device) {
  if (!device.is_cpu()) event_.emplace(device.type());
}

void DeviceEvent::Record(const c10::Stream& stream) {
  if (event_) event_->record(stream);
}

bool DeviceEvent::reached() const { return !event_ || event_->query(); }

void DeviceEvent::Wait() const {
  if (event_) event_->synchronize();
}

void DeviceEvent::Block(const c10::Stream& stream) const {
  if (event_) event_->block(stream);
}

}  // namespace linnet::model
