#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace linnet::model {

// A thread that runs jobs in the order in which they were added. Jobs must not throw.
//
// Thread-safe. Its destructor drops the jobs that have not begun and waits for the one that has.
class JobThread {
 public:
  using Job = std::function<void()>;

  JobThread();
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void Add(Job job);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace linnet::model
