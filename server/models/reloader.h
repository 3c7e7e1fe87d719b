#pragma once

#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
#include "server/models/catalog.h"

namespace linnet::server {

// Runs reloads of a catalog one at a time, in order, on a thread of its own, and counts and logs
// them. A request for a reload that is queued and has not begun is merged with it: the reload still
// sees the disk as of the request or later, and a thousand signals cause one reload. Thread-safe.
class Reloader {
 public:
  // Called once, on the reloader's thread or in Stop.
  using Done = absl::AnyInvocable<void(const ReloadReport&)>;

  // The catalog and the metrics outlive the reloader.
  Reloader(Catalog& catalog, Metrics& metrics);
  ~Reloader();  // calls Stop and waits for the running reload

  // Queues Catalog::Reload of `model`, or of all models if that is empty. UNAVAILABLE after Stop;
  // then `done` is not called.
  absl::Status Ask(const std::string& model, Done done = nullptr);
  // Cancels the queued reloads. Their callbacks get UNAVAILABLE, and so do those of the running
  // one, which may take minutes to end.
  void Stop();
  // Call it after Stop. Waits until the deadline for the running reload, and returns whether it has
  // ended.
  bool WaitUntilIdle(MonotonicTime deadline);

 private:
  struct Job {
    std::string model;
    std::vector<Done> waiting;
  };

  void Run();
  // Reloads, counts and logs.
  ReloadReport Reload(const std::string& model);

  Catalog& catalog_;
  Metrics& metrics_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);  // queued, without the running one
  std::optional<Job> running_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
