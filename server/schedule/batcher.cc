#include "server/schedule/batcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace linnet::server {
namespace {

// Calls that are told apart from those that have a number.
constexpr uint64_t kOwnCall = uint64_t{1} << 63;

void End(std::unique_ptr<Sequence> sequence, absl::Status status) {
  if (sequence->sink != nullptr) sequence->sink->Done(std::move(status));
}

// What a caller is told of an engine's error.
absl::Status Explained(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? OutOfMemory(absl::Seconds(1)) : status;
}

bool IsCancelled(const Sequence& sequence) {
  return sequence.cancelled != nullptr && sequence.cancelled->cancelled();
}

}  // namespace

Batcher::Batcher(model::Engine& engine, const BatcherOptions& options)
    : engine_(engine), options_(options), policy_(options.admit), shed_(options.shed) {}

Batcher::~Batcher() {
  EndAll(absl::CancelledError("the batcher was stopped"), absl::InfinitePast());
}

absl::Status Batcher::Add(std::unique_ptr<Sequence>& sequence, absl::Time now) {
  if (absl::Status status = engine_.Check(sequence->input); !status.ok()) return status;
  sequence->input.id = next_id_++;
  if (sequence->caller.call == 0) sequence->caller.call = kOwnCall | sequence->input.id;
  sequence->most_tokens = MostTokens(sequence->input);
  sequence->source_tokens = static_cast<int>(sequence->input.source.size());
  sequence->rows = model::RowsOf(sequence->input);
  // The scheduler's inbox is part of the queue: what came through it already carries its time.
  if (sequence->times.submitted == absl::InfinitePast()) sequence->times.submitted = now;
  Call& call = calls_[sequence->caller.call];
  ++call.waiting;
  waiting_.Push(std::move(sequence), /*started=*/call.begun);
  return absl::OkStatus();
}

StepReport Batcher::Step(absl::FunctionRef<absl::Time()> clock) {
  StepReport report;
  const absl::Time now = clock();
  const int64_t examined = waiting_.examined();
  DropUnwanted(now, report);
  DropStale(now, report);
  SeatNewcomers(clock, report);
  Advance(clock, report);
  report.examined += static_cast<int>(waiting_.examined() - examined);
  report.waiting = waiting();
  report.remaining = seated();
  report.rows_limit = engine_.info().rows;
  return report;
}

void Batcher::EndAll(const absl::Status& status, absl::Time /*now*/) { EndAll(status, status); }

void Batcher::EndAll(const absl::Status& running, const absl::Status& waiting) {
  // Out of the containers first: a sink sees a batcher that holds nothing.
  auto from_queue = waiting_.TakeAll();
  auto seated = std::exchange(seated_, {});
  calls_.clear();
  for (const auto& [id, sequence] : seated) engine_.Release(id);
  for (auto& [id, sequence] : seated) End(std::move(sequence), running);
  for (auto& sequence : from_queue) End(std::move(sequence), waiting);
}

WaitingQueue::Sequences Batcher::Unqueued(WaitingQueue::Sequences sequences) {
  for (const auto& sequence : sequences) {
    --calls_[sequence->caller.call].waiting;
    Forget(sequence->caller.call);
  }
  return sequences;
}

std::unique_ptr<Sequence> Batcher::Unseat(Seats::iterator which) {
  std::unique_ptr<Sequence> sequence = std::move(which->second);
  seated_.erase(which);
  Call& call = calls_[sequence->caller.call];
  --call.seated;
  call.rows -= sequence->rows;
  Forget(sequence->caller.call);
  return sequence;
}

void Batcher::Forget(uint64_t id) {
  const auto call = calls_.find(id);
  if (call->second.waiting == 0 && call->second.seated == 0) calls_.erase(call);
}

BatchPicture Batcher::Picture(int most) const {
  BatchPicture picture{.seated = seated(), .waiting = waiting()};
  for (const auto& [id, call] : calls_) picture.rows_in_use += call.rows;
  auto add = [&](const Sequence& sequence, bool seated) {
    if (std::ssize(picture.sequences) >= most) return false;
    picture.sequences.push_back(
        {.caller = sequence.caller,
         .seated = seated,
         .rows = sequence.rows,
         .source_tokens = sequence.source_tokens,
         .max_target_tokens = static_cast<int>(sequence.most_tokens - sequence.source_tokens),
         .steps = seated ? static_cast<int>(steps_ - sequence.first_step) : 0,
         .submitted = sequence.times.submitted,
         .seated_at = seated ? sequence.times.seated : absl::InfiniteFuture(),
         .deadline = sequence.deadline});
    return true;
  };
  for (const auto& [id, sequence] : seated_) {
    if (!add(*sequence, true)) return picture;
  }
  for (auto at = waiting_.cursor(); !at.done(); at.Take()) {
    if (!add(**at, false)) return picture;
  }
  return picture;
}

std::vector<std::string> Batcher::RunningRequests() const {
  std::set<std::string> ids;
  for (const auto& [id, sequence] : seated_) ids.insert(sequence->caller.request_id);
  ids.erase("");
  return {ids.begin(), ids.end()};
}

void Batcher::DropUnwanted(absl::Time now, StepReport& report) {
  auto expire = [&](std::unique_ptr<Sequence> sequence) {
    ++report.expired;
    End(std::move(sequence),
        absl::DeadlineExceededError("the deadline passed before the text was complete"));
  };
  auto cancel = [&](std::unique_ptr<Sequence> sequence) {
    ++report.cancelled;
    End(std::move(sequence), absl::CancelledError("cancelled by the caller"));
  };
  // Whose deadline has passed is cancelled by gRPC as well, and that is not the reason.
  for (auto& sequence : Unqueued(waiting_.TakeExpired(now))) expire(std::move(sequence));
  for (auto& sequence : Unqueued(waiting_.TakeCancelled())) cancel(std::move(sequence));
  for (auto next = seated_.begin(); next != seated_.end();) {
    const auto it = next++;
    const bool expired = it->second->deadline <= now;
    if (!expired && !IsCancelled(*it->second)) continue;
    engine_.Release(it->first);
    expired ? expire(Unseat(it)) : cancel(Unseat(it));
  }
}

void Batcher::DropStale(absl::Time now, StepReport& report) {
  shed_.Step(waiting_.any_unstarted(), now);
  const absl::Duration most = shed_.most_wait(now);
  if (most == absl::InfiniteDuration()) return;
  for (auto& sequence : Unqueued(waiting_.TakeSubmittedBefore(now - most))) {
    ++report.shed;
    // Who was sent away together shall not come back together.
    const absl::Duration delay = most * (0.75 + 0.05 * (sequence->input.id % 11));
    const absl::Duration waited = now - sequence->times.submitted;
    End(std::move(sequence), WaitedTooLong(waited, delay));
  }
}

std::vector<WaitingQueue::Ticket> Batcher::FindNewcomers(bool& full, StepReport& report) {
  const int most_rows = static_cast<int>(options_.max_call_rows_ratio * engine_.info().rows);
  std::map<uint64_t, int> rows;  // of the newcomers of each call
  std::vector<WaitingQueue::Ticket> newcomers;
  // Lent by the waiting: the engine wants its inputs side by side.
  std::vector<model::SequenceInput> inputs;
  int64_t tokens = 0;
  for (auto at = waiting_.cursor(); !at.done();) {
    ++report.examined;
    Sequence& sequence = waiting_.at(at.ticket());
    full = options_.max_sequences > 0 && seated() + std::ssize(inputs) >= options_.max_sequences;
    if (full) break;
    int& of_call = rows[sequence.caller.call];
    const int before = of_call + calls_[sequence.caller.call].rows;
    if (before > 0 && before + sequence.rows > most_rows) {
      at.SkipCall();
      continue;
    }
    tokens += std::ssize(sequence.input.source);
    if (!inputs.empty() && tokens > options_.max_encode_tokens) break;
    inputs.push_back(std::move(sequence.input));
    if (!engine_.HasRoom(inputs)) {
      sequence.input = std::move(inputs.back());
      inputs.pop_back();
      full = true;
      break;
    }
    of_call += sequence.rows;
    newcomers.push_back(at.ticket());
    at.Take();
  }
  for (size_t i = 0; i < inputs.size(); ++i) waiting_.at(newcomers[i]).input = std::move(inputs[i]);
  return newcomers;
}

void Batcher::SeatNewcomers(absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  bool full = false;
  const std::vector<WaitingQueue::Ticket> newcomers = FindNewcomers(full, report);
  const bool now = policy_.AdmitNow(static_cast<int>(newcomers.size()), seated());
  report.full = full && (now || newcomers.empty());
  if (now) {
    std::vector<int> lengths;
    for (const auto& newcomer : newcomers)
      lengths.push_back(static_cast<int>(waiting_.at(newcomer).input.source.size()));
    for (const std::vector<int>& members :
         GroupByLength(lengths, options_.admit.encode_call_tokens)) {
      std::vector<WaitingQueue::Ticket> group;
      for (int i : members) group.push_back(newcomers[i]);
      SeatGroup(group, clock, report);
    }
  } else if (newcomers.empty() && seated_.empty() && !waiting_.empty()) {
    // Nobody will ever leave to make room: without this the queue would stand still for good.
    WaitingQueue::Sequences hopeless;
    hopeless.push_back(waiting_.Drop(waiting_.cursor().ticket()));
    auto first = std::move(Unqueued(std::move(hopeless)).front());
    ++report.failed;
    absl::Status status =
        absl::InternalError(absl::StrCat("the engine is empty and has no room for a source of ",
                                         first->input.source.size(), " tokens"));
    End(std::move(first), std::move(status));
  }
}

void Batcher::SeatGroup(const std::vector<WaitingQueue::Ticket>& group,
                        absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  std::vector<model::SequenceInput> inputs;
  for (const WaitingQueue::Ticket& which : group) {
    std::unique_ptr<Sequence> newcomer = waiting_.Serve(which);
    Call& call = calls_[newcomer->caller.call];
    --call.waiting;
    call.begun = true;
    ++call.seated;
    call.rows += newcomer->rows;
    inputs.push_back(std::move(newcomer->input));
    report.encoded_tokens += static_cast<int>(inputs.back().source.size());
    seated_.emplace(inputs.back().id, std::move(newcomer));
  }
  Encode(inputs, clock, report);
}

void Batcher::Encode(std::span<const model::SequenceInput> inputs,
                     absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  const absl::Time before = clock();
  const absl::Status status = engine_.Seat(inputs);
  const absl::Time after = clock();
  ++report.encoder_calls;
  report.encode += after - before;
  if (absl::IsResourceExhausted(status) && inputs.size() > 1) {
    ++report.oom_retries;
    Encode(inputs.first(inputs.size() / 2), clock, report);
    Encode(inputs.subspan(inputs.size() / 2), clock, report);
    return;
  }
  if (!status.ok()) {
    report.failed += static_cast<int>(inputs.size());
    report.failed_requests = RunningRequests();
    for (const auto& input : inputs) End(Unseat(seated_.find(input.id)), Explained(status));
    return;
  }
  size_t longest = 0;
  for (const auto& input : inputs) {
    longest = std::max(longest, input.source.size());
    Sequence& sequence = *seated_.at(input.id);
    sequence.times.seated = before;
    sequence.times.encoded = after;
    sequence.first_step = steps_;
  }
  report.padded_encoded_tokens += static_cast<int>(longest * inputs.size());
  report.seated += static_cast<int>(inputs.size());
}

void Batcher::Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  if (seated_.empty()) return;
  report.sequences = seated();
  report.rows = engine_.rows_in_use();
  report.stepped = true;
  ++steps_;
  const absl::Time before = clock();
  absl::StatusOr<std::vector<model::SequenceEvent>> events = engine_.Step();
  const absl::Time after = clock();
  report.decode = after - before;
  report.ended = after;
  if (!events.ok()) {
    // The engine let all of them go; those that wait have lost nothing.
    report.failed += seated();
    report.failed_requests = RunningRequests();
    while (!seated_.empty()) End(Unseat(seated_.begin()), Explained(events.status()));
    return;
  }
  for (model::SequenceEvent& event : *events) {
    const bool goes_on = !event.finished && event.status.ok();
    if (goes_on && event.stable.empty()) continue;
    auto it = seated_.find(event.id);
    if (it == seated_.end()) continue;
    if (goes_on) {
      if (it->second->sink == nullptr) continue;
      it->second->sink->Progress(std::move(event.stable));
      continue;
    }
    auto sequence = Unseat(it);
    sequence->times.finished = after;
    if (!event.status.ok()) {
      ++report.failed;
      End(std::move(sequence), Explained(event.status));
      continue;
    }
    ++report.finished;
    report.finished_tokens += sequence->most_tokens;
    report.finished_steps += steps_ - sequence->first_step;
    if (!event.hypotheses.empty()) {
      report.target_tokens += static_cast<int>(event.hypotheses.front().tokens.size());
    }
    const SequenceTimes times = sequence->times;
    if (sequence->sink != nullptr)
      sequence->sink->Done(
          SequenceResult{std::move(event.hypotheses), times, std::move(event.attention)});
  }
}

}  // namespace linnet::server
