#pragma once

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace linnet::client {

// A running command with both ends of its pipes.
class Process {
 public:
  // Sets LINNET_SERVER to `server`.
  Process(const std::string& executable, std::vector<std::string> arguments,
          const std::string& server) {
    EXPECT_EQ(pipe(in_.data()), 0);
    EXPECT_EQ(pipe(out_.data()), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in_[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out_[1], STDOUT_FILENO);
    for (int end : {in_[0], in_[1], out_[0], out_[1]}) {
      posix_spawn_file_actions_addclose(&actions, end);
    }
    arguments.insert(arguments.begin(), executable);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::string variable = "LINNET_SERVER=" + server;
    std::array<char*, 2> environment = {variable.data(), nullptr};
    EXPECT_EQ(
        posix_spawn(&pid_, executable.c_str(), &actions, nullptr, argv.data(), environment.data()),
        0);
    posix_spawn_file_actions_destroy(&actions);
    close(in_[0]);
    close(out_[1]);
  }
  ~Process() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (pid_ > 0) Wait();
    if (in_[1] >= 0) close(in_[1]);
    close(out_[0]);
  }

  void Write(const std::string& text) {
    EXPECT_EQ(write(in_[1], text.data(), text.size()), text.size());
  }
  void CloseInput() {
    close(in_[1]);
    in_[1] = -1;
  }
  // Reads the next output, within 20 s; empty at the end.
  std::string Read() {
    pollfd file = {out_[0], POLLIN, 0};
    std::array<char, 4096> buffer;
    if (poll(&file, 1, 20000) <= 0) return "nothing came";
    return std::string(buffer.data(), read(out_[0], buffer.data(), buffer.size()));
  }
  // Reads the output until its end.
  std::string ReadAll() {
    std::string all;
    for (std::string read = Read(); !read.empty(); read = Read()) {
      all += read;
      if (read == "nothing came") break;
    }
    return all;
  }
  void Signal(int signal) { EXPECT_EQ(kill(pid_, signal), 0); }

  // The peak resident memory; call it after the end of the process.
  int64_t max_bytes() const { return max_bytes_; }

  // The exit status, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    rusage used = {};
    EXPECT_EQ(wait4(pid_, &status, 0, &used), pid_);
    max_bytes_ = int64_t{used.ru_maxrss} << 10;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  std::array<int, 2> in_ = {-1, -1}, out_ = {-1, -1};
  pid_t pid_ = 0;
  int64_t max_bytes_ = 0;
};

}  // namespace linnet::client
