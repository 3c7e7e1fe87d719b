#include <ATen/cuda/CUDAGraph.h>

#include <exception>
#include <memory>

#include "model/ops/graph.h"

namespace linnet::ops {
namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(at::MempoolId_t pool, c10::function_ref<void()> work) {
    // Other threads (an encoder, another engine) may go on allocating meanwhile.
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
  // The stream must not stay in capture; the error that is told is the first one.
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
