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

void SignalWatcher::Watch() {
  const sigset_t signals = Signals();
  const int arrived = signalfd(-1, &signals, SFD_CLOEXEC);
  pollfd files[] = {{arrived, POLLIN, 0}, {ended_, POLLIN, 0}};
  while (poll(files, 2, -1) >= 0 && files[1].revents == 0) {
    signalfd_siginfo taken = {};
    if (read(arrived, &taken, sizeof taken) != sizeof taken) break;
    if (stop_.stop_requested()) {
      // Raise the signal unblocked, so that it has its default effect.
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      raise(static_cast<int>(taken.ssi_signo));
    }
    stop_.request_stop();
    eventfd_write(event_, 1);  // after the stop request: a woken thread must see it
  }
  close(arrived);
}

}  // namespace linnet::client
