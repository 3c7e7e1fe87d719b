#pragma once

#include <c10/util/FunctionRef.h>

#include <memory>

// Kernel launches that are recorded once and then launched as a whole. A decoder step is over a
// hundred small kernels, and launching them one by one takes longer than running them. A device
// library that can record (liblinnet_ops_cuda, with CUDA graphs) registers its recorder when it is
// loaded, so that programs that use graphs need no CUDA headers.
namespace linnet::ops {

class Graph {
 public:
  virtual ~Graph() = default;
  // Launches on the current stream. Every launch reads and writes the recorded addresses.
  virtual void Launch() = 0;
};

// Records graphs that share one memory pool. The caller launches the graphs of a recorder on one
// stream; each overwrites the results of the one before it. The recorder and the tensors that a
// graph uses must outlive the graph.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  // Records the launches of `work` on the current stream, which must not be the default one;
  // nothing runs. `work` must not wait for the device, and must have run once before, so that
  // libraries are initialised. Its allocations come from the recorder's pool. Throws c10::Error.
  virtual std::unique_ptr<Graph> Record(c10::function_ref<void()> work) = 0;
};

// Returns null if no loaded library can record.
std::unique_ptr<GraphRecorder> NewGraphRecorder();
void SetNewGraphRecorder(std::unique_ptr<GraphRecorder> (*make)());

}  // namespace linnet::ops
