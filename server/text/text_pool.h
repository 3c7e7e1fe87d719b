#pragma once

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/text/text_queue.h"

namespace linnet::server {

// A small pool of threads that split, tokenise and assemble texts, so that neither gRPC's threads
// nor a scheduler's do. TextQueue decides the order of the jobs. Every job belongs to a call that
// holds a permit of Admission, so the queue needs no limit of its own. An exception in a job fails
// only its call, and is logged. Thread-safe.
class TextPool {
 public:
  explicit TextPool(int threads);
  ~TextPool();  // runs the remaining jobs, then joins

  void Run(TextJob job);
  // Runs the next job on the calling thread, as the threads of the pool do. False if there is none.
  bool RunNext();
  // As TextQueue::EstimateTime.
  absl::Duration EstimateTime(TextStage stage, const Flow& flow, int64_t bytes) const;

 private:
  void Work();

  const int thread_count_;
  mutable Mutex mu_;
  CondVar changed_;
  TextQueue queue_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace linnet::server
