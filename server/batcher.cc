#include "server/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

void End(std::unique_ptr<Sequence> sequence, absl::Status status) {
  sequence->sink->Done(std::move(status));
}

bool IsCancelled(const Sequence& sequence) {
  return sequence.cancelled != nullptr && sequence.cancelled->load(std::memory_order_relaxed);
}

}  // namespace

Batcher::Batcher(model::Engine& engine, const BatcherOptions& options)
    : engine_(engine), options_(options), policy_(options.admit) {}

Batcher::~Batcher() {
  EndAll(absl::CancelledError("the batcher was stopped"), absl::InfinitePast());
}

absl::Status Batcher::Add(std::unique_ptr<Sequence>& sequence, absl::Time now) {
  if (absl::Status status = engine_.Check(sequence->input); !status.ok()) return status;
  sequence->input.id = next_id_++;
  // The scheduler's inbox is part of the queue: what came through it already carries its time.
  if (sequence->times.submitted == absl::InfinitePast()) sequence->times.submitted = now;
  waiting_.push_back(std::move(sequence));
  return absl::OkStatus();
}

StepReport Batcher::Step(absl::FunctionRef<absl::Time()> clock) {
  StepReport report;
  DropUnwanted(clock(), report);
  SeatNewcomers(clock, report);
  Advance(clock, report);
  report.waiting = waiting();
  report.remaining = seated();
  return report;
}

void Batcher::EndAll(const absl::Status& status, absl::Time now) {
  // Out of the containers first: a sink sees a batcher that holds nothing.
  auto waiting = std::exchange(waiting_, {});
  auto seated = std::exchange(seated_, {});
  for (const auto& [id, sequence] : seated) engine_.Release(id);
  for (auto& [id, sequence] : seated) End(std::move(sequence), status);
  for (auto& sequence : waiting) End(std::move(sequence), status);
}

void Batcher::DropUnwanted(absl::Time now, StepReport& report) {
  auto verdict = [&](const Sequence& sequence) {
    if (IsCancelled(sequence)) {
      ++report.cancelled;
      return absl::CancelledError("cancelled by the caller");
    }
    if (sequence.deadline <= now) {
      ++report.expired;
      return absl::DeadlineExceededError("the deadline passed before the text was complete");
    }
    return absl::OkStatus();
  };
  std::deque<std::unique_ptr<Sequence>> waiting;
  for (auto& sequence : std::exchange(waiting_, {})) {
    if (absl::Status status = verdict(*sequence); !status.ok()) {
      End(std::move(sequence), std::move(status));
    } else {
      waiting.push_back(std::move(sequence));
    }
  }
  waiting_ = std::move(waiting);
  for (auto it = seated_.begin(); it != seated_.end();) {
    absl::Status status = verdict(*it->second);
    if (status.ok()) {
      ++it;
      continue;
    }
    engine_.Release(it->first);
    End(std::move(it->second), std::move(status));
    it = seated_.erase(it);
  }
}

int Batcher::CountNewcomers() {
  // Lent by the waiting: the engine wants its inputs side by side.
  std::vector<model::SequenceInput> inputs;
  int64_t tokens = 0;
  for (const auto& sequence : waiting_) {
    if (options_.max_sequences > 0 && seated() + std::ssize(inputs) >= options_.max_sequences)
      break;
    tokens += std::ssize(sequence->input.source);
    if (!inputs.empty() && tokens > options_.max_encode_tokens) break;
    inputs.push_back(std::move(sequence->input));
    if (engine_.HasRoom(inputs)) continue;
    sequence->input = std::move(inputs.back());
    inputs.pop_back();
    break;
  }
  for (size_t i = 0; i < inputs.size(); ++i) waiting_[i]->input = std::move(inputs[i]);
  return static_cast<int>(inputs.size());
}

void Batcher::SeatNewcomers(absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  const int count = waiting_.empty() ? 0 : CountNewcomers();
  if (policy_.AdmitNow(count, seated())) {
    std::vector<int> lengths;
    for (int i = 0; i < count; ++i)
      lengths.push_back(static_cast<int>(waiting_[i]->input.source.size()));
    std::vector<std::vector<std::unique_ptr<Sequence>>> groups;
    for (const std::vector<int>& members :
         GroupByLength(lengths, options_.admit.encode_call_tokens)) {
      auto& group = groups.emplace_back();
      for (int i : members) group.push_back(std::move(waiting_[i]));
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    for (auto& group : groups) SeatGroup(std::move(group), clock, report);
  } else if (count == 0 && seated_.empty() && !waiting_.empty()) {
    // Nobody will ever leave to make room: without this the queue would stand still for good.
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    ++report.failed;
    absl::Status status =
        absl::InternalError(absl::StrCat("the engine is empty and has no room for a source of ",
                                         first->input.source.size(), " tokens"));
    End(std::move(first), std::move(status));
  }
}

void Batcher::SeatGroup(std::vector<std::unique_ptr<Sequence>> group,
                        absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  std::vector<model::SequenceInput> inputs;
  size_t longest = 0;
  for (const auto& newcomer : group) {
    inputs.push_back(std::move(newcomer->input));
    longest = std::max(longest, inputs.back().source.size());
    report.encoded_tokens += static_cast<int>(inputs.back().source.size());
  }
  report.padded_encoded_tokens += static_cast<int>(longest * inputs.size());
  ++report.encoder_calls;
  const absl::Time before = clock();
  const absl::Status status = engine_.Seat(inputs);
  const absl::Time after = clock();
  report.encode += after - before;
  if (!status.ok()) {
    report.failed += static_cast<int>(group.size());
    for (auto& newcomer : group) End(std::move(newcomer), status);
    return;
  }
  report.seated += static_cast<int>(group.size());
  for (size_t i = 0; i < group.size(); ++i) {
    group[i]->times.seated = before;
    group[i]->times.encoded = after;
    seated_.emplace(inputs[i].id, std::move(group[i]));
  }
}

void Batcher::Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  if (seated_.empty()) return;
  report.sequences = seated();
  report.rows = engine_.rows_in_use();
  report.stepped = true;
  const absl::Time before = clock();
  absl::StatusOr<std::vector<model::SequenceEvent>> events = engine_.Step();
  const absl::Time after = clock();
  report.decode = after - before;
  if (!events.ok()) {
    // The engine let all of them go; those that wait have lost nothing.
    auto lost = std::exchange(seated_, {});
    report.failed += static_cast<int>(lost.size());
    for (auto& [id, sequence] : lost) End(std::move(sequence), events.status());
    return;
  }
  for (model::SequenceEvent& event : *events) {
    const bool goes_on = !event.finished && event.status.ok();
    if (goes_on && event.stable.empty()) continue;
    auto it = seated_.find(event.id);
    if (it == seated_.end()) continue;
    if (goes_on) {
      it->second->sink->Progress(std::move(event.stable));
      continue;
    }
    auto sequence = std::move(it->second);
    seated_.erase(it);
    sequence->times.finished = after;
    if (!event.status.ok()) {
      ++report.failed;
      End(std::move(sequence), std::move(event.status));
      continue;
    }
    ++report.finished;
    if (!event.hypotheses.empty()) {
      report.target_tokens += static_cast<int>(event.hypotheses.front().tokens.size());
    }
    const SequenceTimes times = sequence->times;
    sequence->sink->Done(SequenceResult{std::move(event.hypotheses), times});
  }
}

}  // namespace linnet::server
