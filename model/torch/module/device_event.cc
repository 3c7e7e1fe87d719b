#include "model/torch/module/device_event.h"

#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace linnet::model {

namespace {

constexpr int kStreamsOfPool = 32;  // of each priority; c10/cuda/CUDAStream.h

struct TakenStreams {
  absl::Mutex mu;
  std::set<std::pair<c10::DeviceIndex, c10::StreamId>> ids ABSL_GUARDED_BY(mu);
};
TakenStreams& Taken() {
  static auto* const taken = new TakenStreams;  // outlives the engines of static objects
  return *taken;
}

c10::Stream TakeStream(at::Device device, bool urgent) {
  if (device.is_cpu()) return c10::Stream(c10::Stream::DEFAULT, device);
  const c10::impl::VirtualGuardImpl guard(device.type());
  absl::MutexLock lock(&Taken().mu);
  for (int i = 0; i < kStreamsOfPool; ++i) {
    const c10::Stream stream = guard.getStreamFromGlobalPool(device, urgent);
    if (Taken().ids.emplace(stream.device_index(), stream.id()).second) return stream;
  }
  TORCH_CHECK(false, "all ", kStreamsOfPool, " streams of ", device,
              " are in use, one by each engine: serve fewer models on this device");
}

}  // namespace

OwnStream::OwnStream(at::Device device, bool urgent) : stream_(TakeStream(device, urgent)) {}

OwnStream::~OwnStream() {
  absl::MutexLock lock(&Taken().mu);
  Taken().ids.erase({stream_.device_index(), stream_.id()});
}

at::Tensor PinnedZeros(at::IntArrayRef shape, at::ScalarType type, at::Device device) {
  const at::Tensor zeros = at::zeros(shape, type);
  return device.is_cpu() ? zeros : zeros.pin_memory();
}

void WaitFor(const c10::Stream& stream) {
  if (stream.device_type() == at::kCPU) return;
  c10::impl::VirtualGuardImpl(stream.device_type()).synchronizeStream(stream);
}

at::Tensor SendTo(at::Device device, const at::Tensor& tensor) {
  if (device.is_cpu()) return tensor;
  // The pinned-memory allocator keeps the buffer until the copy is done.
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

void SendInto(const at::Tensor& target, const at::Tensor& tensor) {
  const at::Tensor source = target.is_cpu() ? tensor : tensor.pin_memory();
  target.narrow(0, 0, tensor.size(0)).copy_(source, /*non_blocking=*/true);
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
