#include <ATen/cuda/CUDAGraph.h>

#include <exception>
#include <memory>

#include "model/ops/graph.h"

namespace linnet::ops {
namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(at::MempoolId_t pool, c10::function_ref<void()> work) {
    // Thread-local mode: other threads (an encoder, another engine) may allocate during the
    // capture.
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      EndFailed();
      throw;
    }
    graph_.capture_end();
  }

  void Launch() override { graph_.replay(); }

 private:
  // Ends the capture of the stream after an error. A second error is dropped in favour of the
  // first.
  void EndFailed() {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
    }
  }

  at::cuda::CUDAGraph graph_;
};

class CudaGraphRecorder final : public GraphRecorder {
 public:
  std::unique_ptr<Graph> Record(c10::function_ref<void()> work) override {
    return std::make_unique<CudaGraph>(pool_, work);
  }

 private:
  const at::MempoolId_t pool_ = at::cuda::graph_pool_handle();
};

[[maybe_unused]] const bool kRegistered =
    (SetNewGraphRecorder(
         []() -> std::unique_ptr<GraphRecorder> { return std::make_unique<CudaGraphRecorder>(); }),
     true);

}  // namespace
}  // namespace linnet::ops
