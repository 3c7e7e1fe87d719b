#include "server/text/stage_run.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"
#include "server/text/memory_cost.h"

namespace linnet::server {
namespace {

// Work of a slice (model::TextSplitter::Step). A byte of prose is one, and half of one more for its
// share of sentences and sequences.
constexpr int64_t kWorkPerTurn = kBytesPerTurn * 3 / 2;
constexpr int64_t kWorkPerStep = 2048;  // between two looks at the size of the call
constexpr int64_t kWorkOfSequence = 16;
constexpr int kSequencesPerStep = 128;

// The charge for a slice of a text of which `left` bytes are not charged yet. A text that takes
// more work than prose of its length pays for that.
int64_t SliceBytes(int64_t left) {
  return left > 0 ? std::min(left, kBytesPerTurn) : kBytesPerTurn;
}

// Adds to `to`.
void AddDuration(absl::Duration from, google::protobuf::Duration& to) {
  if (from < absl::ZeroDuration()) from = absl::ZeroDuration();  // the wall clock was set back
  from += absl::Seconds(to.seconds()) + absl::Nanoseconds(to.nanos());
  to.set_seconds(absl::IDivDuration(from, absl::Seconds(1), &from));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(from)));
}

}  // namespace

StageRun::StageRun(std::shared_ptr<StagedCall> call)
    : call_(std::move(call)),
      stage_(call_->stage()),
      request_(stage_.request()),
      pool_(call_->services.pool),
      metrics_(call_->services.metrics),
      context_(call_->context),
      permit_(call_->permit),
      request_bytes_(permit_->bytes()),
      streams_(call_->streams()),
      text_queue_(call_->is_first() ? context_.text_queue : absl::ZeroDuration()) {}

void StageRun::Run(TextStage stage, int64_t bytes, bool continues, void (StageRun::*job)()) {
  pool_.Run({.stage = stage,
             .flow = CallerFlow(context_.caller),
             .call = context_.caller.call,
             .bytes = bytes,
             .continues = continues,
             .run =
                 [self = this->shared_from_this(), job, queued = absl::Now()] {
                   self->text_queue_ += std::max(absl::Now() - queued, absl::ZeroDuration());
                   ((*self).*job)();
                 },
             .fail = [self = this->shared_from_this()](
                         absl::Status status) { self->Fail(std::move(status)); }});
}

void StageRun::Start() {
  for (const TextItem& item : request_.items) prepare_left_ += item.bytes() + kBytesPerText;
  RunPrepare();
}

void StageRun::RunPrepare() {
  const int64_t bytes = SliceBytes(prepare_left_);
  prepare_left_ -= bytes;
  Run(TextStage::kPrepare, bytes, prepared_ != absl::InfinitePast(), &StageRun::Prepare);
}

void StageRun::RunWork() {
  // A stream has a job whenever more of a segment is stable.
  const int64_t left = request_.text_bytes - answer_jobs_ * kBytesPerTurn;
  const int64_t bytes = streams_ && answer_jobs_ == 0
                            ? request_.text_bytes / std::max(segment_count_, 1)
                            : SliceBytes(left);
  Run(TextStage::kAnswer, std::max<int64_t>(bytes, 1), answer_jobs_ > 0, &StageRun::Work);
}

void StageRun::Prepare() {
  absl::Status status = PrepareSlice();
  if (status.ok() && texts_.size() < request_.items.size()) return RunPrepare();
  if (status.ok()) status = Submit();
  if (status.ok()) return;  // the scheduler owns it now: touch nothing
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status))
    metrics_.Rejected(RejectReason::kInvalid);
  if (absl::IsUnavailable(status)) {
    const bool draining = ErrorReason(status) == GetCondition(Reason::kShuttingDown).name;
    metrics_.Rejected(draining ? RejectReason::kDraining : RejectReason::kEngine);
  }
  End(std::move(status));
}

absl::Status StageRun::BeginPrepare() {
  texts_.reserve(request_.items.size());
  submission_.needed = {.model = request_.model->key(), .deadline = context_.deadline};
  int64_t longest = 0;
  for (const TextItem& item : request_.items) {
    longest = std::max<int64_t>(longest, std::ssize(*item.text));
    if (item.target != nullptr) longest = std::max<int64_t>(longest, std::ssize(*item.target));
  }
  int64_t bytes = EncodeBytes(longest);
  if (request_.glossary != nullptr) bytes += GlossaryBytes(*request_.glossary);
  RETURN_IF_ERROR(permit_->Hold(bytes));
  prepare_bytes_ = bytes;
  if (request_.glossary != nullptr) glossary_.emplace(*request_.glossary);
  return absl::OkStatus();
}

absl::Status StageRun::CheckWanted() const {
  if (context_.cancelled->cancelled()) return absl::CancelledError("cancelled by the caller");
  if (context_.deadline <= absl::Now())
    return absl::DeadlineExceededError("the deadline passed before decoding began");
  return absl::OkStatus();
}

absl::Status StageRun::PrepareSlice() {
  const absl::Time before = absl::Now();
  if (prepared_ == absl::InfinitePast()) prepared_ = before;
  int64_t left = kWorkPerTurn;
  if (!read_) {
    RETURN_IF_ERROR(CheckWanted());
    read_ = stage_.Read(*permit_, left);
    if (read_) RETURN_IF_ERROR(BeginPrepare());
  }
  while (read_ && left > 0 && texts_.size() < request_.items.size()) {
    RETURN_IF_ERROR(CheckWanted());
    if (preparer_ == nullptr) {
      preparer_ = std::make_unique<TextPreparer>(
          request_, request_.items[texts_.size()], glossary_.has_value() ? &*glossary_ : nullptr,
          PrepareLimits{.max_segments = request_.max_segments - segment_count_,
                        .hold = [this](int64_t held) { return permit_->Hold(held); }});
      left -= kBytesPerText;
    }
    ASSIGN_OR_RETURN(const int64_t worked, preparer_->Step(std::min(left, kWorkPerStep)));
    left -= worked;
    std::vector<PreparedSegment>& segments = preparer_->segments();
    // A given start of the answer is laid on the segments of the whole text.
    if ((request_.split && request_.target_prefix.empty()) || preparer_->done()) {
      ASSIGN_OR_RETURN(const int added, AddSequences(segments, kSequencesPerStep));
      left -= added * kWorkOfSequence;
    }
    if (!preparer_->done() || results_.size() < segments.size()) continue;
    segment_count_ += static_cast<int>(segments.size());
    texts_.push_back({preparer_->Take(), std::exchange(results_, {})});
    preparer_ = nullptr;
  }
  tokenize_ += absl::Now() - before;
  return absl::OkStatus();
}

void StageRun::Fail(absl::Status status) {
  {
    MutexLock lock(mu_);
    if (over_) return;
    if (status_.ok()) status_ = status;
    if (open_ > 0) {
      // The last sequence to end queues another job.
      context_.cancelled->Cancel();
      job_queued_ = false;
      return;
    }
  }
  End(std::move(status));
}

void StageRun::SegmentStable(size_t index, std::vector<model::TokenId> stable) {
  {
    MutexLock lock(mu_);
    segments_[index].stable = std::move(stable);
  }
  Wake();
}

void StageRun::SegmentDone(size_t index, absl::StatusOr<SequenceResult> result) {
  bool wake = streams_;
  {
    MutexLock lock(mu_);
    permit_->GiveBack(segments_[index].tokens);
    if (result.ok()) {
      SequenceResult& stored = *segments_[index].result;
      stored = *std::move(result);
      segments_[index].done = true;
      corrects_estimates_ &= stored.origin == ResultOrigin::kEngine;
      const model::Hypothesis& best = stored.hypotheses.front();
      target_tokens_ += std::ssize(best.tokens);
      if (stored.origin != ResultOrigin::kCache) {
        request_.model->metrics->SequenceFinished(
            stored.times, {.priority = context_.caller.priority,
                           .source_tokens = segments_[index].source_tokens,
                           .target_tokens = static_cast<int>(best.tokens.size()),
                           .ended_by_limit = best.ended_by_limit});
      }
      if (slowest_.finished <= stored.times.finished) slowest_ = stored.times;
    } else if (status_.ok()) {
      status_ = result.status();
      context_.cancelled->Cancel();  // the other segments are no longer needed
    }
    if (--open_ == 0) {
      wake = true;
      ended_ = absl::Now();
    }
  }
  if (wake) Wake();
}

void StageRun::Wake() {
  try {
    MutexLock lock(mu_);
    // A job that is queued checks again before it returns. After the end of the call the flag stays
    // set.
    if (std::exchange(job_queued_, true)) return;
    RunWork();
  } catch (...) {  // no job was queued: this thread ends the call
    LogException("text_job_failed");
    Fail(ErrorOfException());
  }
}

void StageRun::Work() {
  while (true) {
    std::vector<model::TokenId> stable;
    {
      MutexLock lock(mu_);
      if (open_ == 0 && (!status_.ok() || !streams_ || writer_->finished())) break;
      if (!status_.ok() || !streams_ || writer_->finished()) {
        job_queued_ = false;
        return;  // until all sequences have ended
      }
      Segment* const next = writer_->next_is_empty() ? nullptr : &segments_[writer_->next()];
      if (next == nullptr) {
        // Nothing is to be waited for.
      } else if (!next->stable_ends.empty()) {
        const auto& best = next->result->hypotheses.front().tokens;
        stable.assign(best.begin(), best.begin() + next->stable_ends.front());
        next->stable_ends = next->stable_ends.subspan(1);
      } else if (!next->done) {
        stable = std::exchange(next->stable, {});
        if (stable.empty()) {
          job_queued_ = false;
          return;
        }
      }
    }
    if (!stable.empty()) {
      if (auto part = writer_->Stable(stable); part.has_value()) SendPart(*std::move(part));
      continue;
    }
    absl::StatusOr<linnet::v1::TextPart> part = writer_->Done();
    if (part.ok()) {
      SendPart(*std::move(part));
      continue;
    }
    MutexLock lock(mu_);
    status_ = part.status();
    context_.cancelled->Cancel();
  }
  Assemble();
}

void StageRun::SendPart(linnet::v1::TextPart part) {
  std::optional<linnet::v1::TextPart> sent = stage_.Stream(std::move(part), texts_);
  if (!sent.has_value()) return;
  if (!std::exchange(part_sent_, true)) metrics_.FirstSegment(absl::Now() - context_.arrived);
  call_->on_part(*std::move(sent));
}

void StageRun::Assemble() {
  absl::Status status;
  {
    MutexLock lock(mu_);
    status = status_;
  }
  if (status.ok() && answer_jobs_ > 0 && context_.cancelled->cancelled())
    status = absl::CancelledError("cancelled by the caller");
  if (status.ok()) {
    ++answer_jobs_;
    if (!stage_.Assemble(texts_, kBytesPerTurn)) return RunWork();
    metrics_.TokensUsed(context_.caller, source_tokens_, target_tokens_);
    AddTimings(call_->timings);
  }
  // Measured here, because the way from the engine to here can be late as well. gRPC cancels a call
  // at its deadline, and usually reports it first.
  if (corrects_estimates_ && rows_ > 0 &&
      (status.ok() || absl::IsDeadlineExceeded(status) || absl::IsCancelled(status)))
    permit_->Ended(absl::Now(), /*finished=*/status.ok());
  End(std::move(status));
}

void StageRun::AddTimings(linnet::v1::Timings& timings) const {
  timings.clear_total();
  AddDuration(tokenize_, *timings.mutable_tokenize());
  AddDuration(text_queue_, *timings.mutable_text_queue());
  AddDuration(slowest_.added - slowest_.submitted, *timings.mutable_queue());
  AddDuration(slowest_.finished - slowest_.added, *timings.mutable_decode());
  AddDuration(slowest_.encoded - slowest_.added, *timings.mutable_encode());
  AddDuration(absl::Now() - context_.arrived, *timings.mutable_total());
}

void StageRun::LogIfSlow(const absl::Status& status) const {
  const absl::Time now = absl::Now();
  if (now - context_.arrived < call_->services.slow) return;
  if (!call_->is_last() && status.ok()) return;  // the last stage logs all of them
  size_t segments = 0;
  for (const DecodedText& text : texts_) segments += text.results.size();
  const auto seconds = [](absl::Time from, absl::Time to) {
    return from == absl::InfinitePast() || to == absl::InfinitePast()
               ? std::string("-")  // the phase was not reached
               : absl::StrCat(absl::ToDoubleSeconds(to - from));
  };
  const absl::Time began = call_->stage_began();
  std::vector<LogField> fields = {{"code", absl::StatusCodeToString(status.code())},
                                  {"model", request_.model->key()},
                                  {"client", context_.caller.name()},
                                  {"request_id", context_.caller.request_id},
                                  {"segments", segments},
                                  {"rows", rows_},
                                  {"source_tokens", source_tokens_},
                                  {"target_tokens", target_tokens_},
                                  {"seconds", seconds(context_.arrived, now)},
                                  {"wait_seconds", seconds(began, prepared_)},
                                  {"text_queue_seconds", absl::ToDoubleSeconds(text_queue_)},
                                  {"tokenize_seconds", absl::ToDoubleSeconds(tokenize_)},
                                  {"engine_seconds", seconds(submitted_, ended_)},
                                  {"queue_seconds", seconds(slowest_.submitted, slowest_.added)},
                                  {"encode_seconds", seconds(slowest_.added, slowest_.encoded)},
                                  {"decode_seconds", seconds(slowest_.encoded, slowest_.finished)},
                                  {"text_seconds", seconds(ended_, now)}};
  if (!call_->is_first()) {  // the phases are those of the last stage
    const Stage& before = *call_->stages()[call_->current() - 1];
    fields.push_back({"pivot_model", before.request().model->key()});
    fields.push_back({"pivot_seconds", seconds(context_.arrived, began)});
  }
  AddTrace(context_.caller.trace, fields);
  Log(LogLevel::kWarning, "slow_call", fields);
}

void StageRun::End(absl::Status status) {
  {
    MutexLock lock(mu_);
    if (std::exchange(over_, true)) return;
    segments_ = {};
  }
  submission_ = {};
  preparer_.reset();
  metrics_.TextQueued(text_queue_);
  // The caller must get its answer, even without memory for the details.
  try {
    LogIfSlow(status);
    status = WithErrorInfo(status);
  } catch (const std::exception&) {  // answer without the details
  }
  request_.model->metrics->CallEnded(status.code());
  writer_.reset();
  texts_ = {};
  results_ = {};
  // The next stage continues with the permit.
  if (call_->is_last() || !status.ok()) permit_->GiveBackWork();
  permit_->SetBytes(request_bytes_ + (status.ok() ? stage_.bytes() : 0));
  permit_.reset();
  call_->StageEnded(std::move(status));
}

}  // namespace linnet::server
