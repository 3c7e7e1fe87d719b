#pragma once

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
#include "server/models/catalog.h"

namespace linnet::server {

// Reloads of a catalog, one at a time and in the order asked for, on a thread of their own. Who
// asks for one that has not begun yet gets that one: so it sees all that was on disk when it was
// asked for, and a thousand signals are a single reload. Counted and logged. Thread-safe.
class Reloader {
 public:
  // Called once, on the reloader's thread or in Stop.
  using Done = absl::AnyInvocable<void(const ReloadReport&)>;

  // Both outlive it.
  Reloader(Catalog& catalog, Metrics& metrics);
  ~Reloader();  // Stop, and waits for the reload that is under way

  // Catalog::Reload of `model`, or of all if that is empty. UNAVAILABLE after Stop: then `done` is
  // not called.
  absl::Status Ask(const std::string& model, Done done = nullptr);
  // None begins from now on: who waits is told UNAVAILABLE.
  void Stop();

 private:
  struct Job {
    std::string model;
    std::vector<Done> waiting;
  };

  void Run();

  Catalog& catalog_;
  Metrics& metrics_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);  // that have not begun
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
