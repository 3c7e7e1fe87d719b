#pragma once

#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <stdexcept>

namespace linnet::ops {

// Calls body(begin, end) on parts of [0, count), on torch's intra-op threads. A part has at least
// about 30 microseconds of work, at `flops_per_item` multiply-adds per item. Throws what a body
// throws, one of them if several do.
//
// It calls the instance of at::parallel_for that is compiled inside torch. An instance of ours
// would silently run on a single thread without OpenMP; with OpenMP, clang would link a second
// OpenMP runtime with its own thread pool.
template <class Body>
void ParallelFor(int64_t count, int64_t flops_per_item, const Body& body) {
  constexpr int64_t kFlopsPerPart = 1 << 17;
  const int64_t grain = std::max<int64_t>(1, kFlopsPerPart / std::max<int64_t>(1, flops_per_item));
  struct Loop {
    const Body& body;
    std::atomic<bool> failed = false;
    std::exception_ptr error = nullptr;
  } loop{body};
  const auto call = [](int64_t begin, int64_t end, void* context) {
    auto& own = *static_cast<Loop*>(context);
    try {
      own.body(begin, end);
    } catch (...) {  // torch's C interface would replace it by a code
      if (!own.failed.exchange(true)) own.error = std::current_exception();
    }
  };
  if (torch_parallel_for(0, count, grain, call, &loop) != 0)
    throw std::runtime_error("a parallel loop could not be run");
  if (loop.error != nullptr) std::rethrow_exception(loop.error);
}

}  // namespace linnet::ops
