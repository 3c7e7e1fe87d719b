#pragma once

#include <c10/util/FunctionRef.h>

#include <memory>

// Work of a device that is recorded once and from then on launched as a whole: a decoder step is
// over a hundred small kernels, and launching them one by one takes longer than running them. Where
// the device's library can record (liblinnet_ops_cuda, with CUDA graphs), it says so when it is
// loaded; so that programs that use graphs need none of CUDA's headers.
namespace linnet::ops {

class Graph {
 public:
  virtual ~Graph() = default;
  // On the current stream. What was recorded reads and writes the same memory each time.
  virtual void Launch() = 0;
};

// Records graphs that share memory: those of one recorder are launched on one stream, and each
// overwrites what the one before it left there. Graphs outlive neither it nor what they use.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  // Records what `work` launches on the current stream, which is not the default one; nothing runs.
  // `work` may not wait for the device, and has been done once before, so that libraries have set
  // themselves up. What it allocates is the recorder's memory. Throws what torch throws.
  virtual std::unique_ptr<Graph> Record(c10::function_ref<void()> work) = 0;
};

// Null where no library that records is loaded.
std::unique_ptr<GraphRecorder> NewGraphRecorder();
void SetNewGraphRecorder(std::unique_ptr<GraphRecorder> (*make)());

}  // namespace linnet::ops
