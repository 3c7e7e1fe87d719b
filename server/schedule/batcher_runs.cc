// The runs of the batcher: which sequences share one, and the snapshot that lists them.
#include <set>
#include <utility>

#include "server/schedule/batcher.h"

namespace linnet::server {

bool Batcher::Share(std::unique_ptr<Sequence>& sequence, absl::Time now) {
  if (const auto run = running_keys_.find(sequence->key); run != running_keys_.end()) {
    Join(running_.at(run->second), std::move(sequence), now, since_step_);
    return true;
  }
  if (sequence->cache == nullptr) return false;
  const auto answer = sequence->cache->Find(sequence->key);
  if (answer == nullptr) return false;
  ++since_step_.cache_hits;
  ++since_step_.finished;
  AnswerFromCache(std::move(sequence), *answer, now);
  return true;
}

void Batcher::Join(SharedRun& run, std::unique_ptr<Sequence> sequence, absl::Time now,
                   StepReport& report) {
  Count(sequence->caller, {.running = 1});
  calls_.at(sequence->caller.call).started = true;
  waiting_.MarkStarted(sequence->caller.call);
  ++joined_;
  ++report.coalesced;
  run.Join(std::move(sequence), now);
}

SharedRun::Sequences Batcher::Leave(Running::iterator which,
                                    absl::FunctionRef<SharedRun::Sequences(SharedRun&)> take) {
  SharedRun& run = which->second;
  const Caller& owner = run.first().caller;
  const int rows = run.first().rows;
  SharedRun::Sequences left = take(run);
  if (left.empty()) return left;
  Count(owner, {.rows = -rows});
  joined_ -= static_cast<int>(left.size());
  if (run.empty()) {
    ++joined_;  // the first is not counted
    running_keys_.erase(left.front()->key);
    running_.erase(which);
  } else {
    Count(run.first().caller, {.rows = rows});
  }
  for (const auto& sequence : left) Count(sequence->caller, {.running = -1});
  return left;
}

SharedRun::Sequences Batcher::Remove(Running::iterator which) {
  return Leave(which, [](SharedRun& run) { return run.TakeAll(); });
}

BatchSnapshot Batcher::Snapshot(int max) const {
  BatchSnapshot snapshot{.running = running(), .waiting = waiting()};
  for (const auto& [id, call] : calls_) snapshot.rows_in_use += call.rows;
  // `run`: null if it waits.
  auto add = [&](const Sequence& sequence, const SharedRun* run) {
    if (std::ssize(snapshot.sequences) >= max) return false;
    const bool running = run != nullptr;
    const bool joined = running && &run->first() != &sequence;
    snapshot.sequences.push_back(
        {.caller = sequence.caller,
         .running = running,
         .rows = joined ? 0 : sequence.rows,
         .source_tokens = sequence.source_tokens,
         .max_target_tokens = sequence.max_target_tokens,
         .steps = running ? static_cast<int>(run->Steps(steps_)) : 0,
         .submitted = sequence.times.submitted,
         .added_at = running ? sequence.times.added : absl::InfiniteFuture(),
         .deadline = sequence.deadline});
    return true;
  };
  for (const auto& [id, run] : running_) {
    for (const auto& [position, sequence] : run.sequences()) {
      if (!add(*sequence, &run)) return snapshot;
    }
  }
  for (auto at = waiting_.cursor(); !at.done(); at.Take()) {
    if (!add(**at, nullptr)) return snapshot;
  }
  return snapshot;
}

std::vector<std::string> Batcher::RunningRequests() const {
  std::vector<std::string> ids;
  AddRunningRequests(ids);
  return ids;
}

void Batcher::AddRunningRequests(std::vector<std::string>& to) const {
  std::set<std::string> ids(to.begin(), to.end());
  for (const auto& [id, run] : running_) {
    for (const auto& [position, sequence] : run.sequences())
      ids.insert(sequence->caller.request_id);
  }
  ids.erase("");
  to.assign(ids.begin(), ids.end());
}

}  // namespace linnet::server
