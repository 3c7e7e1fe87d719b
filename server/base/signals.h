#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace linnet::server {

// The signals of linnet-server, from its first moment to its last: a thread of its own waits for
// them, so that none of them ever has its default effect.
//
//                    SIGTERM, SIGINT                 SIGHUP      SIGUSR1, SIGUSR2
//   models load      the process ends with status 0  is logged   change the log level
//   serving          WaitForStop returns             reloads     change the log level
//   draining         the process ends by the signal  is logged   change the log level
//
// Make it before any other thread: all threads inherit its mask. One for a process.
class Signals {
 public:
  Signals();
  ~Signals();

  // The server takes calls from now on; `reload` is called on the thread of the signals.
  void Serving(std::function<void()> reload);
  // The signal that says that the server is to stop; nullopt if none came within `timeout`. Once it
  // has returned a signal, the server drains.
  std::optional<int> WaitForStop(absl::Duration timeout = absl::InfiniteDuration());
  // The server drains for another reason.
  void Draining();

 private:
  void Run();
  void Handle(int signal);

  Mutex mu_;
  CondVar changed_;
  std::function<void()> reload_ ABSL_GUARDED_BY(mu_);  // null until the server takes calls
  std::optional<int> stop_ ABSL_GUARDED_BY(mu_);
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
