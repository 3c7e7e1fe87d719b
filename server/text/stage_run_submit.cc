// StageRun: charges the prepared texts and submits them to the model's scheduler.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/text/memory_cost.h"
#include "server/text/stage_run.h"

namespace linnet::server {

class StageRun::SegmentSink : public Sink {
 public:
  SegmentSink(std::shared_ptr<StageRun> run, size_t segment)
      : run_(std::move(run)), segment_(segment) {}
  void Progress(std::vector<model::TokenId> stable) override {
    run_->SegmentStable(segment_, std::move(stable));
  }
  void Done(absl::StatusOr<SequenceResult> result) override {
    run_->SegmentDone(segment_, std::move(result));
  }

 private:
  std::shared_ptr<StageRun> run_;
  const size_t segment_;
};

absl::StatusOr<int> StageRun::AddSequences(std::vector<PreparedSegment>& segments, int max) {
  CallWork& needed = submission_.needed;
  const auto begin = static_cast<int>(results_.size());
  const int end = std::min<int>(static_cast<int>(segments.size()), begin + max);
  int64_t result_bytes = 0;
  for (int i = begin; i < end; ++i) {
    PreparedSegment& segment = segments[i];
    RETURN_IF_ERROR(stage_.SegmentPrepared(request_.items[texts_.size()], segment));
    const auto source = static_cast<int>(segment.source.size());
    if (segment.copied) {
      result_bytes += CopyBytes(request_, std::ssize(segment.text));
      continue;
    }
    model::SearchOptions options = request_.options.ForSource(source);
    if (segment.target.has_value())
      options.max_target_tokens = static_cast<int>(segment.target->size());
    result_bytes += ResultBytes(request_, options, source, segment.align);
  }
  RETURN_IF_ERROR(permit_->Hold(result_bytes));
  for (int i = begin; i < end; ++i) {
    const PreparedSegment& segment = segments[i];
    SequenceResult& result = results_.emplace_back();
    Segment& added = submission_.all.emplace_back();
    if (segment.copied) {
      result.hypotheses.assign(1, {});
      added.done = true;
      ++submission_.copied;
      continue;
    }
    auto sequence = std::make_unique<Sequence>();
    sequence->input = MakeInput(request_, segment);
    sequence->input.report_stable = streams_;
    sequence->caller = context_.caller;
    sequence->deadline = context_.deadline;
    sequence->cancelled = context_.cancelled;
    added.source_tokens = static_cast<int>(segment.source.size());
    source_tokens_ += added.source_tokens;
    if (AnswerFromCache(*sequence, added, result)) continue;
    added.tokens = MaxWork(sequence->input);
    needed.size.Add(sequence->input);
    rows_ += model::RowsOf(sequence->input);
    submission_.segments.push_back(submission_.all.size() - 1);
    submission_.sequences.push_back(std::move(sequence));
  }
  // A later stage was admitted with the first one, unless that needed no engine.
  if (!permit_->has_next()) RETURN_IF_ERROR(permit_->CheckWork(needed.size.tokens));
  return end - begin;
}

absl::Status StageRun::Submit() {
  glossary_.reset();
  permit_->SetBytes(permit_->bytes() - std::exchange(prepare_bytes_, 0));
  metrics_.Tokenized(tokenize_);
  Submission submission = std::exchange(submission_, {});
  std::vector<std::unique_ptr<Sequence>>& sequences = submission.sequences;
  std::vector<Segment>& segments = submission.all;
  CallWork& needed = submission.needed;
  size_t next = 0;
  for (DecodedText& text : texts_) {
    for (SequenceResult& result : text.results) segments[next++].result = &result;
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i]->sink =
        std::make_unique<SegmentSink>(this->shared_from_this(), submission.segments[i]);
  }
  needed.answer =
      pool_.EstimateTime(TextStage::kAnswer, CallerFlow(context_.caller), request_.text_bytes);
  if (const LoadStats loads = request_.model->scheduler->load_stats();
      loads.state != LoadState::kLoaded) {
    needed.load += loads.load_time;
    corrects_estimates_ = false;
  }
  // A call that the cache has answered costs no work, and nothing remains to be estimated.
  if (!sequences.empty()) RETURN_IF_ERROR(Charge(std::move(needed)));
  if (const auto hits = segments.size() - sequences.size() - submission.copied; hits > 0)
    request_.model->metrics->CacheHits(static_cast<int>(hits));
  if (streams_) writer_.emplace(request_, texts_);
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

CallWork::Next StageRun::EstimateNext(const TextRequest& next) const {
  const int max_source = next.model->bundle.manifest.limits().max_source_tokens() -
                         next.model->languages.max_source_tokens();
  CallWork::Next work = {.model = next.model->key()};
  PreparedSegment guess;
  for (const DecodedText& text : texts_) {
    for (const PreparedSegment& segment : text.prepared.segments) {
      if (segment.copied) continue;
      guess.source.resize(std::min<size_t>(segment.source.size(), max_source));
      work.size.Add(MakeInput(next, guess));
    }
  }
  return work;
}

absl::Status StageRun::Charge(CallWork work) {
  if (!call_->is_last()) {
    const TextRequest& next = call_->stages()[call_->current() + 1]->request();
    work.next = EstimateNext(next);
    if (const LoadStats loads = next.model->scheduler->load_stats();
        loads.state != LoadState::kLoaded && next.model != request_.model)
      work.load += loads.load_time;
  }
  const absl::Time now = absl::Now();
  if (!permit_->has_next()) return permit_->Charge(work, now);
  permit_->Continue(work, now);
  return absl::OkStatus();
}

bool StageRun::AnswerFromCache(Sequence& sequence, Segment& segment, SequenceResult& result) {
  ModelCache* const cache = request_.model->cache.get();
  if (cache == nullptr || !request_.use_cache) return false;
  sequence.cache = cache;
  sequence.key = cache->MakeKey(context_.caller, sequence.input);
  const auto found = cache->Find(sequence.key);
  if (found == nullptr) return false;
  const CachedAnswer& answer = *found;
  const absl::Time now = absl::Now();
  result = {.hypotheses = answer.hypotheses,
            .times = {now, now, now, now},
            .attention = answer.attention,
            .origin = ResultOrigin::kCache};
  segment.done = true;
  if (streams_) {
    segment.stable_ends = answer.stable_ends;
    segment.cached = found;
  }
  target_tokens_ += std::ssize(answer.hypotheses.front().tokens);
  slowest_ = result.times;
  corrects_estimates_ = false;
  return true;
}

}  // namespace linnet::server
