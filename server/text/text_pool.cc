#include "server/text/text_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/base/errors.h"
#include "server/base/log.h"
#include "server/base/monotonic.h"
#include "server/base/thread_priority.h"

namespace linnet::server {
namespace {

// Runs one job; its exception becomes the error of its call.
void RunJob(TextJob& job) {
  absl::Status status;
  try {
    return job.run();
  } catch (...) {
    status = ErrorOfException();
  }
  try {
    Log(LogLevel::kError, "text_job_failed",
        {{"why", status.ToString()},
         {"stage", job.stage == TextStage::kPrepare ? "prepare" : "answer"},
         {"client", job.flow.client}});
  } catch (...) {  // the call ends even if that cannot be logged
  }
  try {
    if (job.fail) job.fail(status);
  } catch (...) {  // the client still has its deadline; the thread continues
  }
}

}  // namespace

TextPool::TextPool(int threads) : thread_count_(threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] {
      YieldToEngines();
      Work();
    });
  }
}

TextPool::~TextPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
  while (RunNext()) {
  }
}

void TextPool::Run(TextJob job) {
  MutexLock lock(mu_);
  queue_.Push(std::move(job));
  // Under the lock: after it is released, the job may run, and its call may destroy the pool.
  changed_.NotifyAll();
}

absl::Duration TextPool::EstimateTime(TextStage stage, const Flow& flow, int64_t bytes) const {
  MutexLock lock(mu_);
  return queue_.EstimateTime(stage, flow, bytes, std::max(thread_count_, 1), MonotonicNow());
}

bool TextPool::RunNext() {
  std::optional<TextJob> job;
  {
    MutexLock lock(mu_);
    job = queue_.Next();
    if (!job.has_value()) return false;
  }
  const MonotonicTime before = MonotonicNow();
  RunJob(*job);
  const MonotonicTime ended = MonotonicNow();
  const TextStage stage = job->stage;
  const int64_t bytes = job->bytes;
  job.reset();  // destroys its call; not under the lock
  MutexLock lock(mu_);
  queue_.RecordCompletion(stage, bytes, Elapsed(before, ended), ended);
  return true;
}

void TextPool::Work() {
  while (true) {
    {
      MutexLock lock(mu_);
      while (queue_.empty() && !stopping_) changed_.Wait(mu_);
      if (queue_.empty()) return;
    }
    RunNext();
  }
}

}  // namespace linnet::server
