#pragma once

#include <signal.h>

#include <stop_token>
#include <thread>

namespace linnet::client {

// Turns the first SIGINT or SIGTERM into a stop; the second one ends the process. Made first of all
// in main: the process blocks the signals, and gRPC's threads inherit that, so that none of them is
// interrupted.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();

  std::stop_token token() const { return stop_.get_token(); }
  // An eventfd that becomes readable with the stop.
  int event() const { return event_; }

 private:
  static sigset_t Signals();
  void Watch();

  const int event_;
  const int ended_;  // an eventfd: the watch is over
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace linnet::client
