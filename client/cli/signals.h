#pragma once

#include <signal.h>

#include <mutex>
#include <stop_token>
#include <thread>

namespace linnet::client {

// Turns the first SIGINT or SIGTERM into a stop; the next one ends the process, unless Renew came
// between. Made first of all in main: the process blocks the signals, and gRPC's threads inherit
// that, so that none of them is interrupted.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();

  std::stop_token token() const;
  // A new stop for the next SIGINT. One that SIGTERM has requested stays.
  std::stop_token Renew();
  // An eventfd that becomes readable with the stop.
  int event() const { return event_; }

 private:
  static sigset_t Signals();
  void Watch();

  const int event_;
  const int ended_;  // an eventfd: the watch is over
  mutable std::mutex mu_;
  std::stop_source stop_;    // under mu_
  bool terminated_ = false;  // under mu_
  std::thread thread_;
};

}  // namespace linnet::client
