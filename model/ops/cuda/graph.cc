#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "model/ops/graph.h"

namespace linnet::ops {
namespace {

// Calls `call` and drops its error, in favour of an earlier one.
void Try(c10::function_ref<void()> call) {
  try {
    call();
  } catch (const std::exception&) {
  }
}

// PyTorch's graph. Its capture_end fails if CUDA has invalidated the capture, and then leaves the
// graph registered in both allocators, beyond its life: AfterError closes it there as well.
class Recording final : public at::cuda::CUDAGraph {
 public:
  void AfterError() {
    Try([&] { capture_end(); });
    // If it has ended, the destructor releases the pool; if it has not begun, there is none.
    if (capture_ended_ || capture_dev_ == UNDEFINED_DEVICE) return;
    namespace device = c10::cuda::CUDACachingAllocator;
    Try([&] { device::endAllocateToPool(capture_dev_, mempool_id_); });
    Try([&] { device::releasePool(capture_dev_, mempool_id_); });
    at::HostAllocator* host = at::getHostAllocator(at::kCUDA);
    Try([&] { host->end_allocate_to_pool(mempool_id_); });
    Try([&] { host->release_pool(mempool_id_); });
  }
};

// Held while a graph is recorded or destroyed. Each registers itself in torch's random generator of
// the device, in a set without a lock (torch 2.11), and engines have threads of their own.
std::mutex& GraphMutex() {
  static auto* const mutex = new std::mutex;  // threads may use it until the process ends
  return *mutex;
}

class CudaGraph final : public Graph {
 public:
  // `first`: the memory that steps have used before goes back to the device. The graph has a pool
  // of its own, and the allocator does not take from the others while one is recorded.
  CudaGraph(at::MempoolId_t pool, bool first, c10::function_ref<void()> work) {
    const std::lock_guard lock(GraphMutex());
    if (first) c10::cuda::CUDACachingAllocator::emptyCache();
    graph_.emplace();
    try {
      // Thread-local mode: other threads (an encoder, another engine) may allocate during the
      // capture.
      graph_->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
      work();
      graph_->capture_end();
    } catch (...) {
      graph_->AfterError();
      graph_.reset();
      throw;
    }
  }
  ~CudaGraph() override {
    const std::lock_guard lock(GraphMutex());
    graph_.reset();
  }

  void Launch() override { graph_->replay(); }

 private:
  std::optional<Recording> graph_;
};

class CudaGraphRecorder final : public GraphRecorder {
 public:
  std::unique_ptr<Graph> Record(c10::function_ref<void()> work) override {
    return std::make_unique<CudaGraph>(pool_, std::exchange(first_, false), work);
  }

 private:
  bool first_ = true;
  const at::MempoolId_t pool_ = at::cuda::graph_pool_handle();
};

[[maybe_unused]] const bool kRegistered =
    (SetNewGraphRecorder(
         []() -> std::unique_ptr<GraphRecorder> { return std::make_unique<CudaGraphRecorder>(); }),
     true);

}  // namespace
}  // namespace linnet::ops
