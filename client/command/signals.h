#pragma once

#include <signal.h>

#include <mutex>
#include <stop_token>
#include <thread>

namespace linnet::client {

// Turns the first SIGINT or SIGTERM into a stop request; the next one ends the process, unless
// Renew was called in between. Create it first in main: it blocks the signals, and gRPC's threads
// inherit the mask, so that none of them is interrupted. Thread-safe.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();

  std::stop_token token() const;
  // Returns a token for the next SIGINT. A stop that SIGTERM has requested stays requested.
  std::stop_token Renew();
  // An eventfd that becomes readable when a stop is requested.
  int event() const { return event_; }

 private:
  static sigset_t Signals();
  void Watch();

  const int event_;
  const int ended_;  // an eventfd that ends the thread
  mutable std::mutex mu_;
  std::stop_source stop_;    // under mu_
  bool terminated_ = false;  // under mu_
  std::thread thread_;
};

}  // namespace linnet::client
