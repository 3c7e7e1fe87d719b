#include "model/ops/graph.h"

#include <atomic>

namespace linnet::ops {
namespace {

std::atomic<std::unique_ptr<GraphRecorder> (*)()> make_recorder = nullptr;

}  // namespace

std::unique_ptr<GraphRecorder> NewGraphRecorder() {
  const auto make = make_recorder.load();
  return make == nullptr ? nullptr : make();
}

void SetNewGraphRecorder(std::unique_ptr<GraphRecorder> (*make)()) { make_recorder = make; }

}  // namespace linnet::ops
