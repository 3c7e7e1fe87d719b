#include "client/command/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace linnet::client {

sigset_t SignalWatcher::Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

SignalWatcher::SignalWatcher() : event_(eventfd(0, EFD_CLOEXEC)), ended_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  eventfd_write(ended_, 1);
  thread_.join();
  close(ended_);
  close(event_);
}

std::stop_token SignalWatcher::token() const {
  const std::lock_guard lock(mu_);
  return stop_.get_token();
}

std::stop_token SignalWatcher::Renew() {
  const std::lock_guard lock(mu_);
  if (terminated_ || !stop_.stop_requested()) return stop_.get_token();
  eventfd_t taken;
  eventfd_read(event_, &taken);
  stop_ = std::stop_source();
  return stop_.get_token();
}

void SignalWatcher::Watch() {
  const sigset_t signals = Signals();
  const int arrived = signalfd(-1, &signals, SFD_CLOEXEC);
  pollfd files[] = {{arrived, POLLIN, 0}, {ended_, POLLIN, 0}};
  while (poll(files, 2, -1) >= 0 && files[1].revents == 0) {
    signalfd_siginfo taken = {};
    if (read(arrived, &taken, sizeof taken) != sizeof taken) break;
    std::stop_source stop;
    {
      const std::lock_guard lock(mu_);
      if (stop_.stop_requested()) {
        // Raise the signal unblocked, so that it has its default effect.
        pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
        raise(static_cast<int>(taken.ssi_signo));
      }
      terminated_ = taken.ssi_signo == SIGTERM;
      stop = stop_;
    }
    stop.request_stop();
    eventfd_write(event_, 1);  // after the stop request: a woken thread must see it
  }
  close(arrived);
}

}  // namespace linnet::client
