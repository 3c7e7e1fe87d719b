#pragma once

#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace linnet::ops {

// Calls body(begin, end) on parts of [0, count), on torch's intra-op threads. A part has at least
// about 30 microseconds of work, at `flops_per_item` multiply-adds per item.
//
// It calls the instance of at::parallel_for that is compiled inside torch. An instance of ours
// would silently run on a single thread without OpenMP; with OpenMP, clang would link a second
// OpenMP runtime with its own thread pool.
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
