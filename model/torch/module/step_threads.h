#pragma once

#include <cstdint>

#include "linnet/v1/bundle.pb.h"

namespace linnet::model {

// Decides how many threads compute a step or an encoder call on the CPU. It holds no state of a
// thread; results do not depend on it.
//
// Threads that wait for the next operator spin (wait_policy.cc), which costs a small model more
// than they save. Firefox's en-pt, int8, one sentence at a time, two cores: a second thread
// took 1.9 times the CPU time for no gain in wall time on idle cores, and 4 times the CPU time for
// more wall time on busy ones (tests/bench/engine/small_models.py). So all of a small step runs on
// the calling thread. That is decided for the step and not for each operator, because a single
// parallel operator keeps the other threads spinning.
class StepThreads {
 public:
  // An architecture without dimensions always gets all threads.
  StepThreads(const linnet::v1::Architecture& architecture, bool int8, int threads);

  int threads() const { return threads_; }
  // `outputs` is the number of logits of all rows together.
  int OfStep(int64_t rows, int64_t outputs) const;
  // For an encoder call before a step of that size: it wakes the threads if the step does.
  int OfEncoderCall(int64_t tokens, int64_t rows, int64_t outputs) const;

 private:
  int threads_;
  int64_t dimension_;
  int64_t cost_;               // of four multiply-adds in float32
  int64_t decoder_, encoder_;  // multiply-adds of a row, without outputs, and of a token
};

// Sets the threads of torch on the calling thread, and sets them back.
class ThreadScope {
 public:
  ThreadScope(int threads, int before);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  const int threads_, before_;
};

}  // namespace linnet::model
