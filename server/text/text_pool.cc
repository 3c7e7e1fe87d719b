#include "server/text/text_pool.h"

#include <utility>

namespace linnet::server {

TextPool::TextPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

TextPool::~TextPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void TextPool::Run(Job job, Urgency urgency) {
  MutexLock lock(mu_);
  (urgency == Urgency::kAnswer ? answers_ : newcomers_).push_back(std::move(job));
  // Under the lock: once it is free, the job may run and with its call the pool may go.
  changed_.NotifyAll();
}

void TextPool::Work() {
  while (true) {
    Job job;
    {
      MutexLock lock(mu_);
      while (answers_.empty() && newcomers_.empty() && !stopping_) changed_.Wait(mu_);
      std::deque<Job>& queue = answers_.empty() ? newcomers_ : answers_;
      if (queue.empty()) return;
      job = std::move(queue.front());
      queue.pop_front();
    }
    job();
  }
}

}  // namespace linnet::server
