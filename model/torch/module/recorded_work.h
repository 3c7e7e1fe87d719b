#pragma once

#include <c10/core/Stream.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/ops/gemm_choice.h"
#include "model/ops/graph.h"

namespace linnet::model {

// Thrown if work cannot be recorded as a graph.
class GraphsFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Work that a device does again and again in a few sizes: launched as one graph for each size, or
// kernel by kernel where there are no graphs, as on the CPU. The caller pads its work to the next
// size. A decoder step and an encoder call are such work.
//
// Its owner's thread calls Prepare; then one thread at a time calls Launch.
class RecordedWork {
 public:
  // Does the work in one size, on the current stream, with tensors at fixed addresses. Throws
  // c10::Error.
  using Work = std::function<void(int size)>;

  // `name` and `items` are for messages: "a step" of so many "rows". `sizes` are ascending and at
  // least one.
  // `time_gemms`: choose the algorithm of each gemm by its time. The work must not run longer than
  // what it refers to.
  RecordedWork(std::string name, std::string items, std::vector<int> sizes, bool time_gemms,
               Work work);

  // Does the work once in every size and records it as a graph, unless `no_graphs` gives a reason
  // not to: then a GPU does it in the largest size. The inputs must be those of work that
  // does nothing. Throws GraphsFailed if recording fails; the object must then be destroyed, since
  // the allocator keeps its recording state.
  void Prepare(const c10::Stream& stream, const std::string& no_graphs);
  // "25 graphs", or the reason why there are none.
  const std::string& summary() const { return summary_; }

  int max() const { return sizes_.back(); }
  // The smallest size for so many items, which are at most max().
  int SizeFor(int items) const;
  // Launches on the current stream, which must be that of Prepare.
  void Launch(int size);

 private:
  std::string name_, items_;
  std::vector<int> sizes_;
  bool time_gemms_;
  Work work_;
  std::unique_ptr<ops::GraphRecorder> recorder_;
  std::map<int, std::unique_ptr<ops::Graph>> graphs_;  // by size
  std::string summary_ = "not prepared";
};

}  // namespace linnet::model
