#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "server/mutex.h"

namespace linnet::server {

// The few threads that split, tokenise and put text together, so that neither gRPC's threads nor a
// scheduler's do. Every job belongs to a call that holds a permit of Admission, so the queue needs
// no limit of its own. Thread-safe.
class TextPool {
 public:
  using Job = absl::AnyInvocable<void()>;
  // An answer goes before a newcomer: it gives its permit back.
  enum class Urgency { kNewcomer, kAnswer };

  explicit TextPool(int threads);
  ~TextPool();  // runs what is left, then joins

  void Run(Job job, Urgency urgency);

 private:
  void Work();

  Mutex mu_;
  CondVar changed_;
  std::deque<Job> answers_ ABSL_GUARDED_BY(mu_);
  std::deque<Job> newcomers_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace linnet::server
