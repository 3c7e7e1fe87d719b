#include "server/base/signals.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include "server/base/exceptions.h"
#include "server/base/log.h"

namespace linnet::server {
namespace {

constexpr int kWake = SIGUSR2;  // ends the thread's wait

sigset_t Handled() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

// Ends the process by the signal's default effect. Process 1 of a container does not end by such a
// signal, so the exit status follows.
[[noreturn]] void EndBy(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace

Signals::Signals() {
  const sigset_t signals = Handled();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { Run(); });
}

Signals::~Signals() {
  {
    MutexLock lock(mu_);
    ending_ = true;
  }
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

void Signals::Serving(std::function<void()> reload) {
  MutexLock lock(mu_);
  reload_ = std::move(reload);
}

int Signals::WaitForStop() {
  MutexLock lock(mu_);
  while (!stop_.has_value()) changed_.Wait(mu_);
  return *stop_;
}

void Signals::Stop() {
  MutexLock lock(mu_);
  if (!stop_.has_value()) stop_ = 0;
  changed_.NotifyAll();
}

void Signals::Run() {
  const sigset_t signals = Handled();
  int signal = 0;
  while (sigwait(&signals, &signal) == 0) {
    {
      MutexLock lock(mu_);
      if (ending_) return;
    }
    try {
      Handle(signal);
    } catch (...) {  // other signals are handled as ever
      LogException("signal_failed");
    }
  }
}

void Signals::Handle(int signal) {
  if (signal == SIGUSR1) return (void)ChangeLogLevel(LogLevel::kDebug);
  if (signal == SIGUSR2) return (void)ChangeLogLevel(std::nullopt);
  std::function<void()> reload;
  bool stopping = false;
  {
    MutexLock lock(mu_);
    if (signal == SIGHUP) reload = reload_;
    stopping = stop_.has_value();
    if (signal != SIGHUP && !stopping && reload_ != nullptr) {
      stop_ = signal;
      changed_.NotifyAll();
      return;
    }
  }
  if (signal == SIGHUP && reload != nullptr && !stopping) return reload();
  if (signal == SIGHUP) {
    Log(LogLevel::kInfo, "signal_ignored",
        {{"signal", signal},
         {"because", stopping ? "the server is draining" : "models are loading"}});
    return;
  }
  if (stopping) EndBy(signal);
  Log(LogLevel::kInfo, "stopped", {{"signal", signal}, {"while", "models are loading"}});
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace linnet::server
