#include "server/schedule/batcher.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

// Marks the call number of a sequence that came without one: it is a call of its own.
constexpr uint64_t kOwnCall = uint64_t{1} << 63;

void End(std::unique_ptr<Sequence> sequence, absl::Status status) {
  sequence->End(std::move(status));
}

// Converts an engine's error into the status that the caller gets.
absl::Status ToCallStatus(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? OutOfMemory(absl::Seconds(1)) : status;
}

// Returns how many of the first inputs the engine has room for. They all have rows, so that mostly
// all fit; asked one more at a time, the engine would read them once for each of them.
size_t CountThatFit(const model::Engine& engine, std::span<const model::SequenceInput> inputs) {
  if (inputs.empty() || engine.HasRoom(inputs)) return inputs.size();
  size_t fit = 0, too_many = inputs.size();
  while (too_many - fit > 1) {
    const size_t middle = fit + (too_many - fit) / 2;
    (engine.HasRoom(inputs.first(middle)) ? fit : too_many) = middle;
  }
  return fit;
}

void EndEach(SharedRun::Sequences sequences, const absl::Status& status) {
  for (auto& sequence : sequences) End(std::move(sequence), status);
}

}  // namespace

struct Batcher::Taken {
  void Add(const Sequence& sequence) {
    calls[sequence.caller.call] += sequence.rows;
    clients[sequence.caller.client] += sequence.rows;
    rows += sequence.rows;
    if (sequence.caller.priority == Priority::kInteractive) return;
    lower_rows += sequence.rows;
    lower_tokens += sequence.source_tokens;
    if (sequence.caller.priority == Priority::kBatch) batch_rows += sequence.rows;
  }

  std::map<uint64_t, int> calls;             // rows
  std::map<absl::string_view, int> clients;  // rows
  int rows = 0, batch_rows = 0;
  int lower_rows = 0, lower_tokens = 0;  // of a lower priority than interactive
};

Batcher::Batcher(model::Engine& engine, const BatcherOptions& options)
    : engine_(engine),
      options_(options),
      policy_(WithMeasuredCost(options.encode, engine.info())),
      shed_(options.shed) {
  options_.encode = WithMeasuredCost(options.encode, engine.info());
}

Batcher::~Batcher() {
  const absl::Status stopped = absl::CancelledError("the batcher was stopped");
  EndAll(stopped, stopped);
}

void Batcher::TakeMeasuredCost(const model::EngineInfo& info) {
  options_.encode = WithMeasuredCost(options_.encode, info);
  policy_ = EncodePolicy(options_.encode);
}

absl::Status Batcher::Add(std::unique_ptr<Sequence>& sequence, absl::Time now) {
  RETURN_IF_ERROR(engine_.Check(sequence->input));
  sequence->input.id = next_id_++;
  if (sequence->caller.call == 0) sequence->caller.call = kOwnCall | sequence->input.id;
  sequence->max_tokens = MaxTokens(sequence->input);
  sequence->max_target_tokens = sequence->input.options.max_target_tokens;
  sequence->source_tokens = static_cast<int>(sequence->input.source.size());
  sequence->rows = model::RowsOf(sequence->input);
  // The scheduler sets `submitted` when a sequence enters its inbox: that wait counts as well.
  if (sequence->times.submitted == absl::InfinitePast()) sequence->times.submitted = now;
  sequence->report_stable = sequence->input.report_stable;
  // There were no steps while it was idle.
  if (idle()) shed_.Step(/*waiting=*/false, now);
  if (!sequence->key.empty()) {
    sequence->input.report_stable = true;  // for those that share the result
    if (Share(sequence, now)) return absl::OkStatus();
  }
  if (!calls_.contains(sequence->caller.call)) shed_.Arrived();
  Count(sequence->caller, {.waiting = 1});
  const bool started = calls_.at(sequence->caller.call).started;
  waiting_.Push(std::move(sequence), started);
  return absl::OkStatus();
}

StepReport Batcher::Step(absl::FunctionRef<absl::Time()> clock) {
  StepReport report = TakeReport();
  const absl::Time now = clock();
  const int64_t examined = waiting_.examined();
  EndCancelledAndExpired(now, report);
  Shed(now, report);
  ObserveClasses(now);
  const int wanted = AdmitEligible(clock, report);
  shed_.Step(waiting_.any_unstarted(), now);
  ChooseRuns(wanted, now, report);
  Advance(clock, report);
  report.examined += static_cast<int>(waiting_.examined() - examined);
  report.waiting = waiting();
  report.running = running();
  report.rows_limit = engine_.info().rows;
  return report;
}

void Batcher::EndAll(const absl::Status& running, const absl::Status& waiting) {
  // Empty the containers first: a sink must not observe sequences that are being ended.
  auto from_queue = waiting_.TakeAll();
  auto ended = std::exchange(running_, {});
  calls_.clear();
  clients_.clear();
  classes_ = {};
  waiting_clients_ = 0;
  running_keys_.clear();
  joined_ = 0;
  for (const auto& [id, run] : ended) engine_.Release(id);
  for (auto& [id, run] : ended) EndEach(run.TakeAll(), running);
  for (auto& sequence : from_queue) End(std::move(sequence), waiting);
}

WaitingQueue::Sequences Batcher::TakeOutOfQueue(WaitingQueue::Sequences sequences) {
  for (const auto& sequence : sequences) Count(sequence->caller, {.waiting = -1});
  return sequences;
}

void Batcher::Count(const Caller& caller, const Held& change) {
  const auto call = calls_.try_emplace(caller.call).first;
  const auto client = clients_.try_emplace(caller.client).first;
  waiting_clients_ -= client->second.waiting > 0 ? 1 : 0;
  for (Held* held :
       std::initializer_list<Held*>{&call->second, &client->second, &this->held(caller.priority)}) {
    held->waiting += change.waiting;
    held->running += change.running;
    held->rows += change.rows;
  }
  waiting_clients_ += client->second.waiting > 0 ? 1 : 0;
  if (call->second.empty()) calls_.erase(call);
  if (client->second.empty()) clients_.erase(client);
}

void Batcher::EndCancelledAndExpired(absl::Time now, StepReport& report) {
  auto expire = [&](std::unique_ptr<Sequence> sequence) {
    ++report.expired;
    End(std::move(sequence),
        absl::DeadlineExceededError("the deadline passed before the text was complete"));
  };
  auto cancel = [&](std::unique_ptr<Sequence> sequence) {
    ++report.cancelled;
    End(std::move(sequence), absl::CancelledError("cancelled by the caller"));
  };
  // Expired first: gRPC also cancels a call whose deadline has passed, and the client must get
  // DEADLINE_EXCEEDED.
  for (auto& sequence : TakeOutOfQueue(waiting_.TakeExpired(now))) expire(std::move(sequence));
  for (auto& sequence : TakeOutOfQueue(waiting_.TakeCancelled())) cancel(std::move(sequence));
  for (auto next = running_.begin(); next != running_.end();) {
    const auto it = next++;
    const model::SequenceId id = it->first;
    SharedRun::Sequences left =
        Leave(it, [&](SharedRun& run) { return run.TakeEnded(now, report.examined_running); });
    if (left.empty()) continue;
    if (!running_.contains(id)) engine_.Release(id);
    for (auto& sequence : left)
      sequence->deadline <= now ? expire(std::move(sequence)) : cancel(std::move(sequence));
  }
}

void Batcher::Shed(absl::Time now, StepReport& report) {
  const absl::Duration max = shed_.max_wait(now);
  if (max == absl::InfiniteDuration()) return;
  // A caller without rows is not shed before one that has too many: the rows that become free are
  // for it. More callers than the engine has rows would wait for too long.
  std::optional<bool> hoards;
  int spared = 0;
  const auto keep = [&](const Sequence& sequence) {
    if (spared == engine_.info().rows || clients_.at(sequence.caller.client).rows > 0) return false;
    if (!hoards) {
      const bool now_hoards = SomeoneHoardsRows();
      // Rows that have just become free are still for the callers that wait for them.
      hoards = std::exchange(hoarded_, now_hoards) || now_hoards;
    }
    spared += *hoards ? 1 : 0;
    return *hoards;
  };
  for (auto& sequence : TakeOutOfQueue(waiting_.TakeSubmittedBefore(now - max, keep))) {
    ++report.shed;
    // Spread the retry delays: calls that are shed together must not all retry together.
    const absl::Duration delay = max * (0.75 + 0.05 * (sequence->input.id % 11));
    const absl::Duration waited = now - sequence->times.submitted;
    End(std::move(sequence), WaitedTooLong(waited, delay));
  }
}

bool Batcher::SomeoneHoardsRows() const {
  int highest = 0, widest = 0;
  for (const auto& [id, run] : running_) {
    highest = std::max(highest, clients_.at(run.first().caller.client).rows);
    widest = std::max(widest, run.first().rows);
  }
  return highest > engine_.info().rows / std::ssize(clients_) + widest;
}

void Batcher::ObserveClasses(absl::Time now) {
  const Held& interactive = held(Priority::kInteractive);
  pause_.Observe({.normal = !held(Priority::kNormal).empty(),
                  .interactive_waits = interactive.waiting > 0,
                  .interactive_runs = interactive.running > 0},
                 now);
}

bool Batcher::MayTake(WaitingQueue::Queue::Cursor& at, Taken& taken) const {
  const Sequence& sequence = **at;
  const Caller& caller = sequence.caller;
  const auto exceeds = [&](int rows) { return rows > 0 && rows + sequence.rows > MaxRows(); };
  if (exceeds(calls_.at(caller.call).rows + taken.calls[caller.call])) {
    at.SkipCall();
    return false;
  }
  bool may = waiting_clients_ < 2 ||
             !exceeds(clients_.at(caller.client).rows + taken.clients[caller.client]);
  const int batch_rows = held(Priority::kBatch).rows;
  if (may && caller.priority == Priority::kBatch)
    may = !(pause_.leaves_rows() && exceeds(batch_rows + taken.batch_rows));
  if (may && caller.priority != Priority::kInteractive) {
    const int lower_rows = batch_rows + held(Priority::kNormal).rows + taken.lower_rows;
    may = pause_.Admits(engine_.rows_in_use() + taken.rows, lower_rows, taken.lower_tokens);
  }
  if (!may) at.SkipClient();
  return may;
}

std::vector<WaitingQueue::Ticket> Batcher::FindEligible(const Sequence*& full, StepReport& report) {
  Taken taken;
  std::set<std::string> keys;  // of the eligible sequences
  std::vector<WaitingQueue::Ticket> eligible;
  // Moved out of the waiting sequences and back again: HasRoom takes a contiguous span.
  std::vector<model::SequenceInput> inputs;
  const int free_rows = engine_.info().rows - engine_.rows_in_use();
  int64_t tokens = 0;
  for (auto at = waiting_.cursor(); !at.done();) {
    ++report.examined;
    Sequence& sequence = waiting_.at(at.ticket());
    if (options_.max_sequences > 0 && running() + std::ssize(inputs) >= options_.max_sequences) {
      full = &sequence;
      break;
    }
    if (!MayTake(at, taken)) continue;
    if (!sequence.key.empty() && !keys.insert(sequence.key).second) {
      at.Take();  // it joins the run of the identical one
      continue;
    }
    if (taken.rows + sequence.rows > free_rows) {
      full = &sequence;
      break;
    }
    tokens += std::ssize(sequence.input.source);
    if (!inputs.empty() && tokens > options_.max_encode_tokens) break;
    inputs.push_back(std::move(sequence.input));
    taken.Add(sequence);
    eligible.push_back(at.ticket());
    at.Take();
  }
  const size_t fit = CountThatFit(engine_, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) waiting_.at(eligible[i]).input = std::move(inputs[i]);
  if (fit < eligible.size()) full = &waiting_.at(eligible[fit]);
  eligible.erase(eligible.begin() + static_cast<std::ptrdiff_t>(fit), eligible.end());
  return eligible;
}

int Batcher::AdmitEligible(absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  const Sequence* full = nullptr;
  const std::vector<WaitingQueue::Ticket> eligible = FindEligible(full, report);
  // An interactive sequence does not wait for the sake of the others.
  const Held& interactive = held(Priority::kInteractive);
  const auto urgent = std::ranges::count_if(eligible, [&](const WaitingQueue::Ticket& ticket) {
    return waiting_.at(ticket).caller.priority == Priority::kInteractive;
  });
  const bool now =
      policy_.EncodeNow(static_cast<int>(eligible.size()),
                        urgent > 0 ? interactive.running : running(), engine_.encoding());
  report.full = full != nullptr && (now || eligible.empty());
  const int wanted = full != nullptr && interactive.waiting > urgent ? full->rows : 0;
  if (now) {
    std::vector<int> lengths;
    for (const auto& sequence : eligible)
      lengths.push_back(static_cast<int>(waiting_.at(sequence).input.source.size()));
    for (const std::vector<int>& members :
         GroupByLength(lengths, options_.encode.encode_call_tokens)) {
      std::vector<WaitingQueue::Ticket> group;
      for (int i : members) group.push_back(eligible[i]);
      AdmitAndEncode(group, clock, report);
    }
  } else if (eligible.empty() && running_.empty() && !waiting_.empty()) {
    // Nothing runs that could free rows: without this the first sequence would block the queue.
    WaitingQueue::Sequences dropped;
    dropped.push_back(waiting_.Drop(waiting_.cursor().ticket()));
    auto first = std::move(TakeOutOfQueue(std::move(dropped)).front());
    ++report.failed;
    absl::Status status =
        absl::InternalError(absl::StrCat("the engine is empty and has no room for a source of ",
                                         first->input.source.size(), " tokens"));
    End(std::move(first), std::move(status));
  }
  return wanted;
}

void Batcher::AdmitAndEncode(const std::vector<WaitingQueue::Ticket>& group,
                             absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  std::vector<model::SequenceInput> inputs;
  for (const WaitingQueue::Ticket& which : group) {
    std::unique_ptr<Sequence> added = waiting_.Serve(which);
    Count(added->caller, {.waiting = -1, .running = 1, .rows = added->rows});
    if (!std::exchange(calls_.at(added->caller.call).started, true)) shed_.Started();
    if (added->caller.priority != Priority::kInteractive) pause_.Added(added->source_tokens);
    inputs.push_back(std::move(added->input));
    const std::string key = added->key;
    const model::SequenceId id = inputs.back().id;
    SharedRun& run = running_.emplace(id, SharedRun(std::move(added))).first->second;
    if (key.empty()) continue;
    ++report.cache_misses;
    running_keys_.emplace(key, id);
    for (auto& identical : TakeOutOfQueue(waiting_.TakeIdentical(key)))
      Join(run, std::move(identical), absl::InfinitePast(), report);
  }
  Encode(inputs, clock, report);
}

void Batcher::Encode(std::span<const model::SequenceInput> inputs,
                     absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  const absl::Time before = clock();
  const absl::Status status = engine_.Add(inputs);
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
    AddRunningRequests(report.failed_requests);
    for (const auto& input : inputs) {
      SharedRun::Sequences failed = Remove(running_.find(input.id));
      report.failed += static_cast<int>(failed.size());
      EndEach(std::move(failed), ToCallStatus(status));
    }
    return;
  }
  size_t longest = 0;
  const int encoded = report.encoded_tokens;
  for (const auto& input : inputs) {
    longest = std::max(longest, input.source.size());
    report.encoded_tokens += static_cast<int>(input.source.size());
    running_.at(input.id).SetEncoded(before, after, steps_);
  }
  pause_.RecordEncoding(report.encoded_tokens - encoded, after - before);
  report.padded_encoded_tokens += static_cast<int>(longest * inputs.size());
  report.added += static_cast<int>(inputs.size());
}

void Batcher::ChooseRuns(int wanted, absl::Time now, StepReport& report) {
  ObserveClasses(now);
  int interactive = 0;
  for (const auto& [id, run] : running_) {
    report.running_source_tokens += run.first().source_tokens;
    report.running_steps += run.Steps(steps_);
    if (run.priority() == Priority::kInteractive) interactive += run.first().rows;
  }
  pause_.Choose(interactive, wanted);
  for (const Priority priority : {Priority::kInteractive, Priority::kNormal, Priority::kBatch}) {
    for (auto& [id, run] : running_) {
      if (run.priority() != priority) continue;
      const bool decodes = priority == Priority::kInteractive || pause_.Decodes(run.first().rows);
      if (decodes) {
        ++report.sequences;
        report.rows += run.first().rows;
      } else {
        report.full = false;  // it says nothing about the rows of a full engine
      }
      if (decodes != run.paused()) continue;
      run.SetPaused(!decodes, steps_);
      decodes ? engine_.Resume(id) : engine_.Pause(id);
    }
  }
}

void Batcher::Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report) {
  if (running_.empty()) return;
  report.stepped = true;
  ++steps_;
  const absl::Time before = clock();
  absl::StatusOr<std::vector<model::SequenceEvent>> events = engine_.Step();
  const absl::Time after = clock();
  report.decode = after - before;
  report.ended = after;
  pause_.RecordStep(report.rows, report.decode, after);
  if (!events.ok()) {
    // The engine has dropped all running sequences; the waiting ones are not affected.
    report.failed += running() + joined_;
    AddRunningRequests(report.failed_requests);
    while (!running_.empty()) EndEach(Remove(running_.begin()), ToCallStatus(events.status()));
    return;
  }
  for (model::SequenceEvent& event : *events) {
    const bool unfinished = !event.finished && event.status.ok();
    if (unfinished && event.stable.empty()) continue;
    const auto it = running_.find(event.id);
    if (it == running_.end()) continue;
    if (unfinished) {
      it->second.Progress(std::move(event.stable));
    } else {
      Finish(it, std::move(event), after, report);
    }
  }
}

void Batcher::Finish(Running::iterator which, model::SequenceEvent event, absl::Time now,
                     StepReport& report) {
  const int64_t steps = which->second.Steps(steps_);
  const Sequence& first = which->second.first();
  if (first.caller.priority == Priority::kInteractive)
    pause_.RecordInteractive(now - first.times.added);
  if (event.status.ok() && first.cache != nullptr && !first.key.empty())
    first.cache->Insert(first.key, which->second.MakeAnswer(event));
  SharedRun::Sequences ended = Remove(which);
  if (!event.status.ok()) {
    report.failed += static_cast<int>(ended.size());
    return EndEach(std::move(ended), ToCallStatus(event.status));
  }
  report.finished += static_cast<int>(ended.size());
  report.finished_tokens += ended.front()->max_tokens;
  report.finished_steps += steps;
  report.finished_source_tokens += ended.front()->source_tokens;
  if (!event.hypotheses.empty())
    report.target_tokens += static_cast<int>(event.hypotheses.front().tokens.size());
  for (auto& sequence : ended) {
    if (sequence->sink == nullptr) continue;
    sequence->times.finished = now;
    // The last one takes the result, the others get copies.
    const bool last = sequence == ended.back();
    sequence->End(
        SequenceResult{last ? std::move(event.hypotheses) : event.hypotheses, sequence->times,
                       last ? std::move(event.attention) : event.attention, sequence->origin});
  }
}

}  // namespace linnet::server
