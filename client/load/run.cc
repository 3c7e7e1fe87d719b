#include "client/load/run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace linnet::client {
namespace {

using Clock = std::chrono::steady_clock;

class Run {
 public:
  Run(const LoadPlan& plan, const MakeCall& call, std::stop_token stop)
      : plan_(plan),
        call_(call),
        stop_(std::move(stop)),
        end_(plan.warm_up + plan.duration),
        arrivals_(plan.arrivals, plan.calls_per_second, plan.seed),
        record_(plan.warm_up, end_),
        start_(Clock::now()) {}

  LoadResult operator()() {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < plan_.callers; ++caller) {
      callers.emplace_back([this, caller] { Work(caller); });
    }
    for (std::thread& caller : callers) caller.join();
    const bool stopped = stop_.stop_requested();
    const bool all_made = next_call_ == plan_.most_calls;
    if (stopped || all_made) record_.EndWindow(last_ended_);
    return {record_, last_ended_, stopped};
  }

 private:
  struct Due {
    int64_t index;
    absl::Duration intended;
  };

  absl::Duration Elapsed() const { return absl::FromChrono(Clock::now() - start_); }

  // A caller takes the next call before its time and sleeps until then.
  void Work(int caller) {
    while (const std::optional<Due> due = Take()) {
      if (plan_.open && !SleepUntil(due->intended)) {
        std::lock_guard lock(mu_);
        if (due->intended <= Elapsed()) record_.AddNotSent(1);  // else it was not yet to be sent
        return;
      }
      CallTimes times;
      times.sent = Elapsed();
      times.intended = plan_.open ? due->intended : times.sent;
      const CallOutcome outcome = call_(due->index, caller);
      times.ended = Elapsed();
      std::lock_guard lock(mu_);
      record_.Add(times, outcome);
      last_ended_ = std::max(last_ended_, times.ended);
    }
  }

  std::optional<Due> Take() {
    std::lock_guard lock(mu_);
    if (stop_.stop_requested() || next_call_ >= plan_.most_calls) return std::nullopt;
    const absl::Duration now = Elapsed();
    if (!plan_.open) {
      if (now >= end_) return std::nullopt;
      return Due{next_call_++, now};
    }
    if (all_taken_) return std::nullopt;
    const absl::Duration intended = arrivals_.Next();
    if (intended >= end_) {
      all_taken_ = true;
      return std::nullopt;
    }
    if (now <= end_ + plan_.drain) return Due{next_call_++, intended};
    record_.AddNotSent(1 + CountLeft());
    return std::nullopt;
  }

  // The calls that were still to come.
  int64_t CountLeft() {
    int64_t left = 0;
    while (arrivals_.Next() < end_ && next_call_ + left + 1 < plan_.most_calls) ++left;
    all_taken_ = true;
    return left;
  }

  // False if the run was stopped before.
  bool SleepUntil(absl::Duration time) {
    std::unique_lock lock(sleep_mu_);
    std::condition_variable_any sleep;
    sleep.wait_until(lock, stop_, start_ + absl::ToChronoNanoseconds(time), [] { return false; });
    return !stop_.stop_requested();
  }

  const LoadPlan plan_;
  const MakeCall& call_;
  const std::stop_token stop_;
  const absl::Duration end_;

  std::mutex mu_;
  Arrivals arrivals_;  // under mu_, as all below
  int64_t next_call_ = 0;
  bool all_taken_ = false;
  LoadRecord record_;
  absl::Duration last_ended_;

  std::mutex sleep_mu_;
  const Clock::time_point start_;
};

}  // namespace

LoadResult RunLoad(const LoadPlan& plan, const MakeCall& call, std::stop_token stop) {
  return Run(plan, call, std::move(stop))();
}

}  // namespace linnet::client
