#pragma once

#include <signal.h>

#include <stop_token>
#include <thread>

namespace linnet::client {

// Turns the first SIGINT or SIGTERM into a stop request; the next one ends the process. Create it
// first in main: it blocks the signals, and gRPC's threads inherit the mask, so that none of them
// is interrupted. Thread-safe.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();

  std::stop_token token() const { return stop_.get_token(); }
  // An eventfd that becomes readable when a stop is requested.
  int event() const { return event_; }

 private:
  static sigset_t Signals();
  void Watch();

  const int event_;
  const int ended_;  // an eventfd that ends the thread
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace linnet::client
