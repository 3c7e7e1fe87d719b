#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace linnet::server {

// Handles the signals of linnet-server on a thread of its own, so that none of them has its default
// effect.
//
//                    SIGTERM, SIGINT                 SIGHUP      SIGUSR1, SIGUSR2
//   models load      the process exits with 0        is logged   change the log level
//   serving          WaitForStop returns             reloads     change the log level
//   draining         the process ends by the signal  is logged   change the log level
//
// An exception of `reload` is logged as signal_failed, and the next signal is handled as ever.
//
// Construct it before any other thread: all threads inherit its signal mask. One per process.
// Thread-safe.
class Signals {
 public:
  Signals();
  ~Signals();

  // Enters the state serving; `reload` is called on the signal thread.
  void Serving(std::function<void()> reload);
  // Waits for SIGTERM or SIGINT and returns it, or 0 after Stop. Either enters the state draining.
  int WaitForStop();
  // Stops for another reason than a signal.
  void Stop();

 private:
  void Run();
  void Handle(int signal);

  Mutex mu_;
  CondVar changed_;
  std::function<void()> reload_ ABSL_GUARDED_BY(mu_);  // null until the state is serving
  std::optional<int> stop_ ABSL_GUARDED_BY(mu_);
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
