#include "server/models/reloader.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"

namespace linnet::server {
namespace {

using What = ReloadReport::Outcome::What;

void LogReport(const std::string& model, const ReloadReport& report) {
  auto count = [&](What what) {
    return std::count_if(report.outcomes.begin(), report.outcomes.end(),
                         [&](const auto& outcome) { return outcome.what == what; });
  };
  Log(report.ok() ? LogLevel::kInfo : LogLevel::kError, "reloaded",
      {{"model", model.empty() ? "all" : model},
       {"loaded", count(What::kLoaded)},
       {"unchanged", count(What::kUnchanged)},
       {"removed", count(What::kRemoved)},
       {"failed", count(What::kFailed)},
       {"seconds", absl::ToDoubleSeconds(report.duration)},
       {"status", report.status.ToString()}});
}

}  // namespace

Reloader::Reloader(Catalog& catalog, Metrics& metrics)
    : catalog_(catalog), metrics_(metrics), thread_([this] { Run(); }) {}

Reloader::~Reloader() {
  Stop();
  thread_.join();
}

absl::Status Reloader::Ask(const std::string& model, Done done) {
  MutexLock lock(mu_);
  if (stopping_) return ShuttingDown();
  auto job = std::find_if(jobs_.begin(), jobs_.end(),
                          [&](const Job& other) { return other.model == model; });
  if (job == jobs_.end()) {
    jobs_.push_back({model, {}});
    job = jobs_.end() - 1;
    changed_.NotifyAll();
  }
  if (done != nullptr) job->waiting.push_back(std::move(done));
  return absl::OkStatus();
}

void Reloader::Stop() {
  std::deque<Job> jobs;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    jobs = std::exchange(jobs_, {});
    if (running_.has_value()) jobs.push_front(std::exchange(*running_, {}));
    changed_.NotifyAll();
  }
  ReloadReport report;
  report.status = ShuttingDown();
  for (Job& job : jobs) {
    for (Done& done : job.waiting) done(report);
  }
}

bool Reloader::WaitUntilIdle(MonotonicTime deadline) {
  MutexLock lock(mu_);
  while (running_.has_value() && changed_.WaitUntil(mu_, deadline)) {
  }
  return !running_.has_value();
}

void Reloader::Run() {
  while (true) {
    std::string model;
    {
      MutexLock lock(mu_);
      while (jobs_.empty() && !stopping_) changed_.Wait(mu_);
      if (jobs_.empty()) return;
      model = jobs_.front().model;
      running_ = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const ReloadReport report = Reload(model);
    Job job;
    {
      MutexLock lock(mu_);
      job = *std::exchange(running_, std::nullopt);
      changed_.NotifyAll();
    }
    for (Done& done : job.waiting) {
      try {
        done(report);
      } catch (...) {  // the others are answered
        LogException("reload_not_answered");
      }
    }
  }
}

ReloadReport Reloader::Reload(const std::string& model) {
  const absl::Time before = absl::Now();
  ReloadReport report;
  try {
    report = catalog_.Reload(model);
  } catch (...) {  // the models that are served stay
    LogException("reload_failed");
    report.status = ErrorOfException();
  }
  report.duration = absl::Now() - before;
  try {
    // An unknown name is an error of the client and not counted: nothing was reloaded.
    if (!absl::IsNotFound(report.status) || ErrorReason(report.status).empty()) {
      metrics_.Reloaded(report.ok());
      LogReport(model, report);
    }
  } catch (...) {
    LogException("reload_not_logged");
  }
  return report;
}

}  // namespace linnet::server
