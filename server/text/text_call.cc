#include "server/text/text_call.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/text/language_detector.h"
#include "server/text/part_writer.h"
#include "server/text/text_reply.h"
#include "server/text/text_work.h"

namespace linnet::server {
namespace {

void SetDuration(absl::Duration from, google::protobuf::Duration& to) {
  if (from < absl::ZeroDuration()) from = absl::ZeroDuration();  // the wall clock was set back
  to.set_seconds(absl::IDivDuration(from, absl::Seconds(1), &from));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(from)));
}

void Describe(const LanguageGuess& guess, linnet::v1::LanguageDetection& detection) {
  detection.set_reliable(guess.reliable);
  for (const LanguageGuess::Language& language : guess.languages) {
    linnet::v1::DetectedLanguage& detected = *detection.add_languages();
    detected.set_language_code(language.code);
    detected.set_confidence(language.share);
  }
}

}  // namespace

// One call. Its jobs on the pool and its sinks hold it together: the last of them to go lets it
// die, whether it was called or not, which is why the pointer is shared. The scheduler's thread
// files what becomes of the segments; a single job on the pool, at any time, reads it.
template <typename Response>
class TextCalls::Call : public std::enable_shared_from_this<Call<Response>> {
 public:
  Call(TextCalls& calls, TextRequest request, Permit permit, Response& response,
       const CallContext& context, OnPart on_part, Done done)
      : calls_(calls),
        request_(std::move(request)),
        permit_(std::move(permit)),
        response_(response),
        context_(context),
        caller_(context.caller),
        on_part_(std::move(on_part)),
        done_(std::move(done)) {
    if (caller_.call == 0) caller_.call = calls.NewCall();
  }

  // On the pool.
  void Prepare();

 private:
  // One segment, counted through all texts.
  struct Segment {
    SegmentWork* work = nullptr;
    int64_t tokens = 0;                  // of work, as the permit counts it
    std::vector<model::TokenId> stable;  // that the job on the pool has not seen yet
    bool done = false;                   // work->result is filled
  };

  class SegmentSink : public Sink {
   public:
    SegmentSink(std::shared_ptr<Call> call, size_t segment)
        : call_(std::move(call)), segment_(segment) {}
    void Progress(std::vector<model::TokenId> stable) override {
      call_->SegmentStable(segment_, std::move(stable));
    }
    void Done(absl::StatusOr<SequenceResult> result) override {
      call_->SegmentDone(segment_, std::move(result));
    }

   private:
    std::shared_ptr<Call> call_;
    const size_t segment_;
  };

  absl::Status PrepareAndSubmit();
  // On the scheduler's thread.
  void SegmentStable(size_t index, std::vector<model::TokenId> stable);
  void SegmentDone(size_t index, absl::StatusOr<SequenceResult> result);
  // Sends the call to the pool.
  void Wake();
  // On the pool: hands on what there is of the stream, and ends the call once all has ended.
  void Work();
  void Assemble();
  void End(absl::Status status);

  bool streams() const { return on_part_ != nullptr; }

  TextCalls& calls_;
  const TextRequest request_;
  std::optional<Permit> permit_;
  Response& response_;
  const CallContext context_;
  Caller caller_;
  OnPart on_part_;
  Done done_;

  std::vector<TextWork> works_;
  absl::Duration tokenize_;
  SequenceTimes slowest_;  // the scheduler's, until all has ended
  std::optional<PartWriter> writer_;

  Mutex mu_;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mu_);
  int open_ ABSL_GUARDED_BY(mu_) = 0;          // sequences that have not ended
  bool at_work_ ABSL_GUARDED_BY(mu_) = false;  // a job is on the pool
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

template <typename Response>
void TextCalls::Call<Response>::Prepare() {
  absl::Status status = PrepareAndSubmit();
  if (status.ok()) return;  // in the scheduler's hands: touch nothing
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status))
    calls_.metrics_.Rejected(RejectReason::kInvalid);
  if (absl::IsUnavailable(status)) {
    const bool draining = ErrorReason(status) == ConditionOf(Reason::kShuttingDown).name;
    calls_.metrics_.Rejected(draining ? RejectReason::kDraining : RejectReason::kEngine);
  }
  End(std::move(status));
}

template <typename Response>
absl::Status TextCalls::Call<Response>::PrepareAndSubmit() {
  const absl::Time before = absl::Now();
  auto unwanted = [&]() -> absl::Status {
    if (context_.cancelled->load(std::memory_order_relaxed))
      return absl::CancelledError("cancelled by the caller");
    if (context_.deadline <= absl::Now()) {
      return absl::DeadlineExceededError("the deadline passed before decoding began");
    }
    return absl::OkStatus();
  };
  for (const TextItem& item : request_.items) {
    if (absl::Status status = unwanted(); !status.ok()) return status;
    auto work = PrepareText(request_, item);
    if (!work.ok()) return work.status();
    works_.push_back(*std::move(work));
  }
  tokenize_ = absl::Now() - before;
  calls_.metrics_.Tokenized(tokenize_, request_.text_bytes);

  CallWork needed{.model = request_.model->key(), .deadline = context_.deadline};
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Segment> segments;
  for (TextWork& text : works_) {
    for (SegmentWork& segment : text.segments) {
      auto sequence = std::make_unique<Sequence>();
      sequence->input = InputOf(request_, segment);
      sequence->input.report_stable = streams();
      sequence->caller = caller_;
      sequence->deadline = context_.deadline;
      sequence->cancelled = context_.cancelled;
      sequence->sink = std::make_unique<SegmentSink>(this->shared_from_this(), segments.size());
      const int64_t tokens = WorkOf(sequence->input);
      needed.tokens += tokens;
      needed.longest = std::max(needed.longest, MostTokens(sequence->input));
      sequences.push_back(std::move(sequence));
      segments.push_back({.work = &segment, .tokens = tokens, .stable = {}});
    }
  }
  if (absl::Status status = permit_->Charge(needed, absl::Now()); !status.ok()) return status;
  if (streams()) writer_.emplace(request_, works_);
  {
    MutexLock lock(mu_);
    segments_ = std::move(segments);
    open_ = static_cast<int>(sequences.size());
  }
  // On success nothing here may be touched any more: the sinks may be at work.
  return AtField("request", Reason::kBeyondEngine, request_.model->scheduler->Submit(sequences));
}

template <typename Response>
void TextCalls::Call<Response>::SegmentStable(size_t index, std::vector<model::TokenId> stable) {
  {
    MutexLock lock(mu_);
    segments_[index].stable = std::move(stable);
  }
  Wake();
}

template <typename Response>
void TextCalls::Call<Response>::SegmentDone(size_t index, absl::StatusOr<SequenceResult> result) {
  bool wake = streams();
  {
    MutexLock lock(mu_);
    permit_->GiveBack(segments_[index].tokens);
    if (result.ok()) {
      SegmentWork& work = *segments_[index].work;
      work.result = *std::move(result);
      segments_[index].done = true;
      const model::Hypothesis& best = work.result.hypotheses.front();
      request_.model->metrics->SequenceFinished(
          work.result.times, static_cast<int>(work.source.size()),
          static_cast<int>(best.tokens.size()), best.ended_by_limit);
      if (slowest_.finished <= work.result.times.finished) slowest_ = work.result.times;
    } else if (status_.ok()) {
      status_ = result.status();
      context_.cancelled->store(true, std::memory_order_relaxed);  // the others are for nothing
    }
    wake |= --open_ == 0;
  }
  if (wake) Wake();
}

template <typename Response>
void TextCalls::Call<Response>::Wake() {
  MutexLock lock(mu_);
  // A job that is there looks again before it goes; and where the call ended meanwhile, it stays
  // set.
  if (std::exchange(at_work_, true)) return;
  calls_.pool_.Run([self = this->shared_from_this()] { self->Work(); }, TextPool::Urgency::kAnswer);
}

template <typename Response>
void TextCalls::Call<Response>::Work() {
  while (true) {
    std::vector<model::TokenId> stable;
    {
      MutexLock lock(mu_);
      if (open_ == 0 && (!status_.ok() || !streams() || writer_->finished())) break;
      if (!status_.ok() || !streams() || writer_->finished()) {
        at_work_ = false;
        return;  // until the rest has ended
      }
      Segment& next = segments_[writer_->next()];
      if (!next.done) {
        stable = std::exchange(next.stable, {});
        if (stable.empty()) {
          at_work_ = false;
          return;
        }
      }
    }
    if (!stable.empty()) {
      if (auto part = writer_->Stable(stable); part.has_value()) on_part_(*std::move(part));
      continue;
    }
    absl::StatusOr<linnet::v1::TextPart> part = writer_->Done();
    if (part.ok()) {
      on_part_(*std::move(part));
      continue;
    }
    MutexLock lock(mu_);
    status_ = part.status();
    context_.cancelled->store(true, std::memory_order_relaxed);
  }
  Assemble();
}

template <typename Response>
void TextCalls::Call<Response>::Assemble() {
  absl::Status status;
  {
    MutexLock lock(mu_);
    status = status_;
  }
  if (status.ok()) {
    FillReply(request_, works_, response_);
    linnet::v1::Timings& timings = *response_.mutable_timings();
    SetDuration(tokenize_, *timings.mutable_tokenize());
    SetDuration(slowest_.seated - slowest_.submitted, *timings.mutable_queue());
    SetDuration(slowest_.finished - slowest_.seated, *timings.mutable_decode());
    SetDuration(slowest_.encoded - slowest_.seated, *timings.mutable_encode());
    SetDuration(absl::Now() - context_.arrived, *timings.mutable_total());
  }
  End(std::move(status));
}

template <typename Response>
void TextCalls::Call<Response>::End(absl::Status status) {
  permit_.reset();
  Done done = std::move(done_);
  // The call counts as under way until its answer is handed over, and nothing of `calls_` is
  // touched after that.
  done(WithErrorInfo(std::move(status)));
  calls_.Leave();
}

TextCalls::TextCalls(Catalog& catalog, Admission& admission, TextPool& pool, Metrics& metrics,
                     const TextLimits& limits)
    : catalog_(catalog), admission_(admission), pool_(pool), metrics_(metrics), limits_(limits) {}

TextCalls::~TextCalls() { Drain(absl::Now()); }

bool TextCalls::Enter() {
  MutexLock lock(mu_);
  if (draining_) return false;
  ++calls_;
  return true;
}

void TextCalls::Leave() {
  MutexLock lock(mu_);
  if (--calls_ == 0) changed_.NotifyAll();
}

template <typename Request, typename Response>
void TextCalls::Start(const Request& request, Response& response, const CallContext& context,
                      OnPart on_part, Done done) {
  if (!Enter()) {
    metrics_.Rejected(RejectReason::kDraining);
    return done(ShuttingDown());
  }
  auto refuse = [&](absl::Status status) {
    done(std::move(status));
    Leave();
  };
  absl::StatusOr<TextRequest> checked = CheckRequest(request, catalog_, limits_);
  if (!checked.ok()) {
    metrics_.Rejected(absl::IsNotFound(checked.status()) ? RejectReason::kNotFound
                                                         : RejectReason::kInvalid);
    return refuse(checked.status());
  }
  CallContext prioritised = context;
  if (checked->priority.has_value()) prioritised.caller.priority = *checked->priority;
  absl::StatusOr<Permit> permit =
      admission_.Enter(prioritised.caller, static_cast<int64_t>(request.ByteSizeLong()));
  if (!permit.ok()) return refuse(permit.status());
  auto call =
      std::make_shared<Call<Response>>(*this, *std::move(checked), *std::move(permit), response,
                                       prioritised, std::move(on_part), std::move(done));
  pool_.Run([call = std::move(call)] { call->Prepare(); }, TextPool::Urgency::kNewcomer);
}

void TextCalls::Translate(const linnet::v1::TranslateRequest& request,
                          linnet::v1::TranslateResponse& response, const CallContext& context,
                          Done done) {
  Start(request, response, context, nullptr, std::move(done));
}

void TextCalls::Summarize(const linnet::v1::SummarizeRequest& request,
                          linnet::v1::SummarizeResponse& response, const CallContext& context,
                          Done done) {
  Start(request, response, context, nullptr, std::move(done));
}

void TextCalls::StreamTranslate(const linnet::v1::TranslateRequest& request,
                                linnet::v1::TranslateResponse& response, const CallContext& context,
                                OnPart on_part, Done done) {
  Start(request, response, context, std::move(on_part), std::move(done));
}

void TextCalls::StreamSummarize(const linnet::v1::SummarizeRequest& request,
                                linnet::v1::SummarizeResponse& response, const CallContext& context,
                                OnPart on_part, Done done) {
  Start(request, response, context, std::move(on_part), std::move(done));
}

void TextCalls::Score(const linnet::v1::ScoreRequest& request, linnet::v1::ScoreResponse& response,
                      const CallContext& context, Done done) {
  Start(request, response, context, nullptr, std::move(done));
}

void TextCalls::DetectLanguage(const linnet::v1::DetectLanguageRequest& request,
                               linnet::v1::DetectLanguageResponse& response,
                               const CallContext& context, Done done) {
  if (!Enter()) {
    metrics_.Rejected(RejectReason::kDraining);
    return done(ShuttingDown());
  }
  auto refuse = [&](absl::Status status) {
    done(std::move(status));
    Leave();
  };
  int64_t text_bytes = 0;
  if (auto status = CheckContents(request.contents(), limits_, text_bytes); !status.ok()) {
    metrics_.Rejected(RejectReason::kInvalid);
    return refuse(std::move(status));
  }
  absl::StatusOr<Permit> permit =
      admission_.Enter(context.caller, static_cast<int64_t>(request.ByteSizeLong()));
  if (!permit.ok()) return refuse(permit.status());
  pool_.Run(
      [this, &request, &response, cancelled = context.cancelled,
       permit = std::optional<Permit>(*std::move(permit)), done = std::move(done)]() mutable {
        absl::Status status;
        for (const std::string& text : request.contents()) {
          if (cancelled->load(std::memory_order_relaxed)) {
            status = WithErrorInfo(absl::CancelledError("cancelled by the caller"));
            break;
          }
          Describe(server::DetectLanguage(text), *response.add_detections());
        }
        permit.reset();
        done(std::move(status));
        Leave();
      },
      TextPool::Urgency::kNewcomer);
}

linnet::v1::RequestLimits TextCalls::request_limits() const {
  linnet::v1::RequestLimits limits;
  limits.set_max_contents(limits_.max_contents);
  limits.set_max_text_bytes(limits_.max_text_bytes);
  limits.set_max_call_tokens(admission_.limits().max_tokens);
  limits.set_max_lines_under_way(limits_.max_lines_under_way);
  return limits;
}

void TextCalls::ListModels(linnet::v1::ListModelsResponse& response) const {
  for (linnet::v1::Model& model : catalog_.List()) *response.add_models() = std::move(model);
  *response.mutable_request_limits() = request_limits();
}

absl::Status TextCalls::GetModel(const linnet::v1::GetModelRequest& request,
                                 linnet::v1::GetModelResponse& response) const {
  const absl::StatusOr<std::shared_ptr<ServedModel>> model = catalog_.Named(request.name());
  if (!model.ok()) {
    metrics_.Rejected(absl::IsNotFound(model.status()) ? RejectReason::kNotFound
                                                       : RejectReason::kInvalid);
    return model.status();
  }
  *response.mutable_model() = (*model)->Describe();
  *response.mutable_request_limits() = request_limits();
  return absl::OkStatus();
}

void TextCalls::Drain(absl::Time deadline) {
  {
    MutexLock lock(mu_);
    draining_ = true;
    while (calls_ > 0 && changed_.WaitUntil(mu_, deadline)) {
    }
  }
  // Ends what is left in the schedulers and refuses what still comes from the pool, so that the
  // rest is soon done.
  catalog_.Drain(absl::Now());
  MutexLock lock(mu_);
  while (calls_ > 0) changed_.Wait(mu_);
}

}  // namespace linnet::server
