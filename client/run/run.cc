#include "client/run/run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace linnet::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPiecesOfARamp = 8;
constexpr std::chrono::milliseconds kProgressEvery{500};

std::vector<LoadRecord> MakeParts(const LoadPlan& plan) {
  std::vector<LoadRecord> parts;
  if (!plan.open || plan.schedule.length() == absl::InfiniteDuration()) return parts;
  absl::Duration begin = plan.warm_up;
  for (const RatePart& part : plan.schedule.parts()) {
    const int pieces = part.from == part.to ? 1 : kPiecesOfARamp;
    for (int piece = 0; piece < pieces; ++piece) {
      parts.emplace_back(begin + part.length * piece / pieces,
                         begin + part.length * (piece + 1) / pieces);
    }
    begin += part.length;
  }
  return parts;
}

// The interval of the timeline: about 1/100 of the run if its length is known. An open loop with
// few calls has wider intervals: with one or two calls in each, the rates would be noise.
absl::Duration TimelineInterval(const LoadPlan& plan) {
  if (plan.duration >= absl::Hours(12)) return absl::Seconds(1);
  constexpr double kCallsInEach = 10;
  absl::Duration interval = std::max(absl::Milliseconds(100), plan.duration / 100);
  if (!plan.open) return interval;
  const double rate = plan.schedule.MeanRate(plan.duration);
  if (rate * absl::ToDoubleSeconds(plan.duration) <= kCallsInEach) return plan.duration;
  return std::max(interval, absl::Seconds(kCallsInEach / rate));
}

class Run {
 public:
  Run(const LoadPlan& plan, const MakeCall& call, std::stop_token stop)
      : plan_(plan),
        call_(call),
        end_(plan.warm_up + plan.duration),
        start_(Clock::now()),
        stopped_(std::move(stop)),
        forward_(stopped_, [this] { EndAll(); }),
        arrivals_(plan.arrivals, plan.schedule.After(plan.warm_up), plan.seed),
        record_(plan.warm_up, end_),
        parts_(MakeParts(plan)),
        timeline_(plan.warm_up, TimelineInterval(plan)) {}

  absl::StatusOr<LoadResult> operator()() {
    std::jthread progress;
    std::vector<std::jthread> callers;
    try {
      if (plan_.on_progress) {
        progress = std::jthread([this](std::stop_token done) { Watch(std::move(done)); });
      }
      for (int caller = 0; caller < plan_.callers; ++caller) {
        callers.emplace_back([this, caller] { Work(caller); });
      }
    } catch (const std::system_error& error) {
      EndAll();
      return absl::ResourceExhaustedError(
          absl::StrCat("only ", callers.size(), " of ", plan_.callers,
                       " threads could be started, one for each call in flight (", error.what(),
                       "); have fewer calls in flight"));
    }
    for (std::jthread& caller : callers) caller.join();
    if (end_all_.stop_requested()) CountThoseLeft();
    const bool stopped = stopped_.stop_requested();
    const bool all_made = next_call_ == plan_.max_calls;
    if (stopped || gave_up_ || all_made) {
      record_.EndWindow(last_ended_);
      while (!parts_.empty() && parts_.back().begin() >= last_ended_) parts_.pop_back();
      for (LoadRecord& part : parts_) part.EndWindow(last_ended_);
    }
    return LoadResult{record_, parts_, timeline_, last_ended_, stopped, gave_up_};
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Due {
    int64_t index;
    absl::Duration intended;
  };

  // Called without mu_, or with it.
  void EndAll() {
    int64_t never = kNever;
    ended_all_at_.compare_exchange_strong(never, absl::ToInt64Nanoseconds(Elapsed()));
    end_all_.request_stop();
  }

  // Counts the calls that were due when the run ended early, and which no caller had taken.
  void CountThoseLeft() {
    const absl::Duration ended = absl::Nanoseconds(ended_all_at_.load());
    last_ended_ = std::max(last_ended_, ended);
    if (!plan_.open || all_taken_) return;
    for (int64_t call = next_call_; call < plan_.max_calls; ++call) {
      const absl::Duration intended = arrivals_.Next();
      if (intended > ended || intended >= end_) return;
      AddNotSent(intended);
    }
  }

  absl::Duration Elapsed() const { return absl::FromChrono(Clock::now() - start_); }

  // The loop of a caller's thread: takes the next call and sleeps until its due time.
  void Work(int caller) {
    while (const std::optional<Due> due = Take()) {
      if (plan_.open && !SleepUntil(due->intended)) {
        std::lock_guard lock(mu_);
        if (due->intended <= Elapsed()) AddNotSent(due->intended);  // otherwise it was not due yet
        return;
      }
      CallTimes times;
      times.sent = Elapsed();
      times.intended = due->intended;
      ++in_flight_;
      const CallOutcome outcome = call_(due->index, caller);
      --in_flight_;
      times.ended = Elapsed();
      std::lock_guard lock(mu_);
      Add(times, outcome);
    }
  }

  // The methods below require mu_ unless they say otherwise.
  void Add(const CallTimes& times, const CallOutcome& outcome) {
    record_.Add(times, outcome);
    for (LoadRecord& part : parts_) part.Add(times, outcome);
    timeline_.Add(times, outcome);
    last_ended_ = std::max(last_ended_, times.ended);
    if (plan_.on_call) plan_.on_call(times, outcome);
    if (outcome.abandonment != Abandonment::kNone) return;
    const absl::Duration latency = times.ended - times.intended;
    ++ended_;
    if (outcome.status.ok()) {
      recent_.Record(latency);
    } else {
      ++failed_;
    }
    if (!plan_.give_up || times.intended < plan_.warm_up) return;
    if (!outcome.status.ok() || latency > plan_.give_up->limit) ++bad_;
    if (bad_ <= plan_.give_up->max_bad || gave_up_) return;
    gave_up_ = true;
    EndAll();
  }

  void AddNotSent(absl::Duration intended) {
    record_.AddNotSent(intended);
    for (LoadRecord& part : parts_) part.AddNotSent(intended);
    timeline_.AddNotSent(intended);
  }

  // Locks mu_.
  std::optional<Due> Take() {
    std::lock_guard lock(mu_);
    if (end_all_.stop_requested() || next_call_ >= plan_.max_calls) return std::nullopt;
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
    AddNotSent(intended);
    for (int64_t left = next_call_ + 1; left < plan_.max_calls; ++left) {
      const absl::Duration never = arrivals_.Next();
      if (never >= end_) break;
      AddNotSent(never);
    }
    all_taken_ = true;
    return std::nullopt;
  }

  // Returns false if the run is stopped first. Called without mu_.
  bool SleepUntil(absl::Duration time) {
    std::unique_lock lock(sleep_mu_);
    std::condition_variable_any sleep;
    sleep.wait_until(lock, end_all_.get_token(), start_ + absl::ToChronoNanoseconds(time),
                     [] { return false; });
    return !end_all_.stop_requested();
  }

  // Locks mu_, but not while it reports.
  void Watch(std::stop_token done) {
    std::mutex mu;
    std::condition_variable_any sleep;
    absl::Duration last;
    while (true) {
      std::unique_lock lock(mu);
      sleep.wait_for(lock, done, kProgressEvery, [] { return false; });
      if (done.stop_requested()) return;
      LoadProgress progress;
      {
        std::lock_guard guard(mu_);
        progress.elapsed = Elapsed();
        progress.in_flight = in_flight_;
        progress.ended = ended_;
        progress.failed = failed_;
        progress.since = progress.elapsed - last;
        progress.answered = recent_.count();
        progress.p50 = recent_.Percentile(50);
        progress.p99 = recent_.Percentile(99);
        recent_ = LatencyHistogram(5);
        last = progress.elapsed;
      }
      plan_.on_progress(progress);
    }
  }

  const LoadPlan plan_;
  const MakeCall& call_;
  const absl::Duration end_;
  const Clock::time_point start_;
  std::stop_source end_all_;                    // a stop from outside, or the run has given up
  std::atomic<int64_t> ended_all_at_ = kNever;  // in nanoseconds
  const std::stop_token stopped_;
  const std::stop_callback<std::function<void()>> forward_;
  std::atomic<int64_t> in_flight_ = 0;

  std::mutex mu_;
  Arrivals arrivals_;  // guarded by mu_, as all below
  int64_t next_call_ = 0;
  bool all_taken_ = false;
  LoadRecord record_;
  std::vector<LoadRecord> parts_;
  Timeline timeline_;
  absl::Duration last_ended_;
  int64_t ended_ = 0, failed_ = 0, bad_ = 0;
  bool gave_up_ = false;
  LatencyHistogram recent_{5};

  std::mutex sleep_mu_;
};

}  // namespace

absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan, const MakeCall& call,
                                   std::stop_token stop) {
  return Run(plan, call, std::move(stop))();
}

}  // namespace linnet::client
