#include "server/schedule/shared_run.h"

#include <span>
#include <utility>

namespace linnet::server {
namespace {

// Reports each prefix of `tokens` that ends at one of `ends`.
void ReportStable(std::span<const model::TokenId> tokens, std::span<const int> ends,
                  const Sequence& sequence) {
  if (!sequence.report_stable || sequence.sink == nullptr) return;
  for (const int end : ends) sequence.sink->Progress({tokens.begin(), tokens.begin() + end});
}

}  // namespace

void SharedRun::SetEncoded(absl::Time added, absl::Time encoded, int64_t step) {
  encoded_ = encoded;
  first_step_ = step;
  for (const auto& [position, sequence] : sequences_) {
    sequence->times.added = added;
    sequence->times.encoded = encoded;
  }
}

Priority SharedRun::priority() const {
  int highest = static_cast<int>(Priority::kInteractive);
  while (highest > 0 && priorities_[highest] == 0) --highest;
  return static_cast<Priority>(highest);
}

void SharedRun::SetPaused(bool paused, int64_t step) {
  if (!paused) first_step_ += step - *paused_;
  paused_ = paused ? std::optional(step) : std::nullopt;
}

void SharedRun::Join(std::unique_ptr<Sequence> sequence, absl::Time now) {
  sequence->origin = ResultOrigin::kCoalesced;
  if (encoded_ != absl::InfiniteFuture()) sequence->times.added = sequence->times.encoded = now;
  ReportStable(stable_, stable_ends_, *sequence);
  Push(std::move(sequence));
}

void SharedRun::Push(std::unique_ptr<Sequence> owned) {
  const uint64_t position = next_++;
  Sequence& sequence = *owned;
  sequences_.emplace(position, std::move(owned));
  ++priorities_[static_cast<int>(sequence.caller.priority)];
  try {
    if (sequence.deadline != absl::InfiniteFuture())
      deadlines_.emplace(sequence.deadline, position);
    if (sequence.cancelled != nullptr) cancellations_[sequence.cancelled.get()].insert(position);
    if (sequence.report_stable && sequence.sink != nullptr) streams_.emplace(position, &sequence);
  } catch (...) {
    Take(position);  // no index has a sequence that the run has not
    throw;
  }
}

std::unique_ptr<Sequence> SharedRun::Take(uint64_t position) {
  const auto at = sequences_.find(position);
  std::unique_ptr<Sequence> sequence = std::move(at->second);
  sequences_.erase(at);
  --priorities_[static_cast<int>(sequence->caller.priority)];
  streams_.erase(position);
  deadlines_.erase({sequence->deadline, position});
  const auto call = cancellations_.find(sequence->cancelled.get());
  if (call == cancellations_.end()) return sequence;
  call->second.erase(position);
  if (call->second.empty()) cancellations_.erase(call);
  return sequence;
}

SharedRun::Sequences SharedRun::TakeEnded(absl::Time now, int& examined) {
  Sequences taken;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    ++examined;
    taken.push_back(Take(deadlines_.begin()->second));
  }
  for (auto next = cancellations_.begin(); next != cancellations_.end();) {
    ++examined;
    const auto call = next++;  // erased with its last sequence
    if (!call->first->cancelled()) continue;
    const std::set<uint64_t> positions = call->second;
    examined += static_cast<int>(positions.size());
    for (const uint64_t position : positions) taken.push_back(Take(position));
  }
  return taken;
}

SharedRun::Sequences SharedRun::TakeAll() {
  Sequences taken;
  taken.reserve(sequences_.size());
  for (auto& [position, sequence] : sequences_) taken.push_back(std::move(sequence));
  sequences_.clear();
  deadlines_.clear();
  cancellations_.clear();
  streams_.clear();
  priorities_ = {};
  return taken;
}

void SharedRun::Progress(std::vector<model::TokenId> stable) {
  const bool keeps = !first().key.empty();
  if (keeps) stable_ends_.push_back(static_cast<int>(stable.size()));
  for (const auto& [position, sequence] : streams_) sequence->sink->Progress(stable);
  if (keeps) stable_ = std::move(stable);
}

CachedAnswer SharedRun::MakeAnswer(const model::SequenceEvent& event) const {
  return {event.hypotheses, event.attention, {stable_ends_.begin(), stable_ends_.end()}};
}

void AnswerFromCache(std::unique_ptr<Sequence> sequence, const CachedAnswer& answer,
                     absl::Time now) {
  if (sequence->sink == nullptr) return;
  SequenceTimes& times = sequence->times;
  times.added = times.encoded = times.finished = now;
  if (!answer.hypotheses.empty())
    ReportStable(answer.hypotheses.front().tokens, answer.stable_ends, *sequence);
  sequence->End(SequenceResult{answer.hypotheses, times, answer.attention, ResultOrigin::kCache});
}

}  // namespace linnet::server
