// The command `linnet`: RunCli with the process around it. The first SIGINT or SIGTERM ends calls
// and reading, so that what was answered is written and the rest is reported; the second one ends
// the process.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include "client/cli.h"

namespace {

// Standard input that a stop ends, and that knows whether there is something to read.
class StandardInput : public std::streambuf {
 public:
  // `stopped` becomes readable when reading shall end.
  explicit StandardInput(int stopped) : stopped_(stopped) {}

 protected:
  int_type underflow() override {
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {stopped_, POLLIN, 0}};
    if (poll(files, 2, -1) < 0 || files[1].revents != 0) return traits_type::eof();
    const ssize_t count = read(STDIN_FILENO, buffer_.data(), buffer_.size());
    if (count <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

  // Bytes that can be had without waiting; the end of the input counts as none.
  std::streamsize showmanyc() override {
    int count = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &count) == 0 ? count : 0;
  }

 private:
  const int stopped_;
  std::array<char, 1 << 16> buffer_;
};

// Waits for the signals, which the process blocks: gRPC's threads inherit that, so none of them is
// interrupted.
class SignalWatcher {
 public:
  SignalWatcher() : event_(eventfd(0, EFD_CLOEXEC)) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { Watch(); });
  }
  ~SignalWatcher() {
    ended_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  std::stop_token token() const { return stop_.get_token(); }
  int event() const { return event_; }

 private:
  void Watch() {
    int signal = 0;
    sigwait(&signals_, &signal);
    if (ended_) return;
    // From here on the default: a second Ctrl-C ends the process whatever it does.
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    stop_.request_stop();
    eventfd_write(event_, 1);  // afterwards: whoever is woken by it finds the stop requested
  }

  const int event_;
  sigset_t signals_;
  std::stop_source stop_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  SignalWatcher signals;
  StandardInput buffer(signals.event());
  std::istream in(&buffer);
  const char* server = std::getenv("LINNET_SERVER");
  const linnet::client::Environment environment = {
      in,
      std::cout,
      std::cerr,
      server == nullptr ? "" : server,
      isatty(STDIN_FILENO) != 0,
      signals.token(),
  };
  return linnet::client::RunCli(std::vector<std::string>(argv + 1, argv + argc), environment);
}
