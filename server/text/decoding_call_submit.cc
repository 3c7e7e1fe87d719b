// DecodingCall: charges the prepared texts and submits them to the model's scheduler.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/decoding_options.h"
#include "server/text/decoding_call.h"
#include "server/text/memory_cost.h"

namespace linnet::server {

class DecodingCall::SegmentSink : public Sink {
 public:
  SegmentSink(std::shared_ptr<DecodingCall> call, size_t segment)
      : call_(std::move(call)), segment_(segment) {}
  void Progress(std::vector<model::TokenId> stable) override {
    call_->SegmentStable(segment_, std::move(stable));
  }
  void Done(absl::StatusOr<SequenceResult> result) override {
    call_->SegmentDone(segment_, std::move(result));
  }

 private:
  std::shared_ptr<DecodingCall> call_;
  const size_t segment_;
};

absl::StatusOr<int> DecodingCall::AddSequences(std::vector<PreparedSegment>& segments, int max) {
  CallWork& needed = submission_.needed;
  const int end = std::min<int>(static_cast<int>(segments.size()), sequenced_ + max);
  int64_t result_bytes = 0;
  for (int i = sequenced_; i < end; ++i) {
    const PreparedSegment& segment = segments[i];
    const auto source = static_cast<int>(segment.source.size());
    if (segment.copied) {
      result_bytes += CopyBytes(request_, std::ssize(segment.text));
      continue;
    }
    model::SearchOptions options = MergeOptions(request_.model->bundle, request_.options, source);
    if (segment.target.has_value())
      options.max_target_tokens = static_cast<int>(segment.target->size());
    result_bytes += ResultBytes(request_, options, source);
  }
  RETURN_IF_ERROR(permit_->Hold(result_bytes));
  const int begin = sequenced_;
  for (; sequenced_ < end; ++sequenced_) {
    PreparedSegment& segment = segments[sequenced_];
    Segment& added = submission_.all.emplace_back();
    if (segment.copied) {
      added.done = true;
      ++submission_.copied;
      continue;
    }
    auto sequence = std::make_unique<Sequence>();
    sequence->input = InputOf(request_, segment);
    sequence->input.report_stable = streams();
    sequence->caller = context_.caller;
    sequence->deadline = context_.deadline;
    sequence->cancelled = context_.cancelled;
    source_tokens_ += std::ssize(segment.source);
    added.work = &segment;  // until the text is moved
    if (AnswerFromCache(*sequence, added)) continue;
    added.tokens = WorkOf(sequence->input);
    const int rows = model::RowsOf(sequence->input);
    needed.size.tokens += added.tokens;
    needed.size.rows += rows;
    needed.size.longest = std::max(needed.size.longest, MaxTokens(sequence->input));
    rows_ += rows;
    submission_.segments.push_back(submission_.all.size() - 1);
    submission_.sequences.push_back(std::move(sequence));
  }
  // The second of two calls was admitted with the first.
  if (!permit_->has_next()) RETURN_IF_ERROR(permit_->CheckWork(needed.size.tokens));
  return end - begin;
}

absl::Status DecodingCall::Submit() {
  glossary_.reset();
  permit_->SetBytes(permit_->bytes() - std::exchange(prepare_bytes_, 0));
  metrics_.Tokenized(tokenize_);
  Submission submission = std::exchange(submission_, {});
  std::vector<std::unique_ptr<Sequence>>& sequences = submission.sequences;
  std::vector<Segment>& segments = submission.all;
  CallWork& needed = submission.needed;
  size_t next = 0;
  for (PreparedText& text : texts_) {
    for (PreparedSegment& segment : text.segments) segments[next++].work = &segment;
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i]->sink =
        std::make_unique<SegmentSink>(this->shared_from_this(), submission.segments[i]);
  }
  needed.answer =
      pool_.EstimateTime(TextStage::kAnswer, FlowOf(context_.caller), request_.text_bytes);
  if (const LoadStats loads = request_.model->scheduler->load_stats();
      loads.state != LoadState::kLoaded) {
    needed.load += loads.load_time;
    unusual_ = true;
  }
  // A call that the cache has answered costs no work, and nothing remains to be estimated.
  if (!sequences.empty()) RETURN_IF_ERROR(Charge(std::move(needed)));
  if (const auto hits = segments.size() - sequences.size() - submission.copied; hits > 0)
    request_.model->metrics->CacheHits(static_cast<int>(hits));
  if (streams()) writer_.emplace(request_, texts_, first_ == nullptr ? nullptr : &first_->texts);
  {
    MutexLock lock(mu_);
    segments_ = std::move(segments);
    open_ = static_cast<int>(sequences.size());
  }
  submitted_ = absl::Now();
  if (sequences.empty()) {
    if (slowest_.finished == absl::InfinitePast())
      slowest_ = {submitted_, submitted_, submitted_, submitted_};  // all segments are copied
    ended_ = submitted_;
    Wake();
    return absl::OkStatus();
  }
  // On success no member may be touched any more: the sinks may already run.
  try {
    return AtField("request", Reason::kBeyondEngine, request_.model->scheduler->Submit(sequences));
  } catch (...) {  // the scheduler took no sequence
    MutexLock lock(mu_);
    open_ = 0;
    throw;
  }
}

CallWork::Next DecodingCall::NextWork() const {
  const TextRequest& second = *request_.second;
  const int max_source = second.model->bundle.manifest.limits().max_source_tokens() -
                         second.model->languages.max_source_tokens();
  CallWork::Next next = {.model = second.model->key()};
  PreparedSegment guess;
  for (const PreparedText& text : texts_) {
    for (const PreparedSegment& segment : text.segments) {
      if (segment.copied) continue;
      guess.source.resize(std::min<size_t>(segment.source.size(), max_source));
      const model::SequenceInput input = InputOf(second, guess);
      next.size.tokens += WorkOf(input);
      next.size.rows += model::RowsOf(input);
      next.size.longest = std::max(next.size.longest, MaxTokens(input));
    }
  }
  return next;
}

absl::Status DecodingCall::Charge(CallWork work) {
  if (request_.second != nullptr) {
    work.next = NextWork();
    if (const LoadStats loads = request_.second->model->scheduler->load_stats();
        loads.state != LoadState::kLoaded && request_.second->model != request_.model)
      work.load += loads.load_time;
  }
  const absl::Time now = absl::Now();
  if (!permit_->has_next()) return permit_->Charge(work, now);
  permit_->Continue(work, now);
  return absl::OkStatus();
}

bool DecodingCall::AnswerFromCache(Sequence& sequence, Segment& segment) {
  ModelCache* const cache = request_.model->cache.get();
  if (cache == nullptr || !request_.use_cache.value_or(!sequence.input.options.sampling()))
    return false;
  sequence.cache = cache;
  sequence.key = cache->KeyOf(context_.caller, sequence.input);
  const auto found = cache->Find(sequence.key);
  if (found == nullptr) return false;
  const CachedAnswer& answer = *found;
  const absl::Time now = absl::Now();
  segment.work->result = {.hypotheses = answer.hypotheses,
                          .times = {now, now, now, now},
                          .attention = answer.attention,
                          .origin = ResultOrigin::kCache};
  segment.done = true;
  if (streams()) {
    segment.stable_ends = answer.stable_ends;
    segment.cached = found;
  }
  target_tokens_ += std::ssize(answer.hypotheses.front().tokens);
  slowest_ = segment.work->result.times;
  unusual_ = true;
  return true;
}

}  // namespace linnet::server
