#pragma once

#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace linnet::ops {

// Calls body(begin, end) on parts of [0, count), on torch's intra-op threads; parts smaller than
// about 30 microseconds of work (`flops_per_item` multiply-adds each) are not worth a thread.
//
// at::parallel_for is a template, and one that silently runs on a single thread where the file that
// instantiates it is compiled without OpenMP; with OpenMP, clang would bring a second OpenMP
// runtime with a thread pool of its own. So the call goes to the instance that is compiled inside
// torch.
template <class Body>
void ParallelFor(int64_t count, int64_t flops_per_item, const Body& body) {
  constexpr int64_t kFlopsPerPart = 1 << 17;
  const int64_t grain = std::max<int64_t>(1, kFlopsPerPart / std::max<int64_t>(1, flops_per_item));
  const auto call = [](int64_t begin, int64_t end, void* context) {
    (*static_cast<const Body*>(context))(begin, end);
  };
  if (torch_parallel_for(0, count, grain, call, const_cast<Body*>(&body)) != 0) {
    throw std::runtime_error("a thread of a parallel loop failed, most likely for lack of memory");
  }
}

}  // namespace linnet::ops
