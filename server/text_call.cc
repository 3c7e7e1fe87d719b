#include "server/text_call.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/text_reply.h"

namespace linnet::server {
namespace {

void SetDuration(absl::Duration from, google::protobuf::Duration& to) {
  if (from < absl::ZeroDuration()) from = absl::ZeroDuration();  // the wall clock was set back
  to.set_seconds(absl::IDivDuration(from, absl::Seconds(1), &from));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(from)));
}

}  // namespace

// One call. Its jobs on the pool and its sinks hold it together: the last of them to go lets it
// die, whether it was called or not, which is why the pointer is shared. At any time a single
// thread is at work on it, and each hands it to the next through a lock.
template <typename Response>
class TextCalls::Call : public std::enable_shared_from_this<Call<Response>> {
 public:
  Call(TextCalls& calls, TextRequest request, Permit permit, Response& response,
       const CallContext& context, Done done)
      : calls_(calls),
        request_(std::move(request)),
        permit_(std::move(permit)),
        response_(response),
        context_(context),
        done_(std::move(done)) {}

  // On the pool.
  void Prepare();

 private:
  // Files the result of one sequence; the last one sends the call on.
  class SegmentSink : public Sink {
   public:
    SegmentSink(std::shared_ptr<Call> call, SegmentWork& work)
        : call_(std::move(call)), work_(work) {}
    void Done(absl::StatusOr<SequenceResult> result) override {
      call_->SegmentDone(work_, std::move(result));
    }

   private:
    std::shared_ptr<Call> call_;
    SegmentWork& work_;
  };

  absl::Status PrepareAndSubmit();
  void SegmentDone(SegmentWork& work, absl::StatusOr<SequenceResult> result);
  void Assemble();
  void End(absl::Status status);

  TextCalls& calls_;
  const TextRequest request_;
  std::optional<Permit> permit_;
  Response& response_;
  const CallContext context_;
  Done done_;

  std::vector<TextWork> works_;
  absl::Duration tokenize_;
  SequenceTimes slowest_;
  int open_ = 0;  // sequences that have not ended
  absl::Status status_;
};

template <typename Response>
void TextCalls::Call<Response>::Prepare() {
  absl::Status status = PrepareAndSubmit();
  if (status.ok()) return;  // in the scheduler's hands: touch nothing
  if (status.code() == absl::StatusCode::kInvalidArgument)
    calls_.metrics_.Rejected(RejectReason::kInvalid);
  if (status.code() == absl::StatusCode::kUnavailable)
    calls_.metrics_.Rejected(RejectReason::kDraining);
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
  for (int i = 0; i < request_.contents->size(); ++i) {
    if (absl::Status status = unwanted(); !status.ok()) return status;
    auto work = PrepareText(request_, (*request_.contents)[i], absl::StrCat("contents[", i, "]"));
    if (!work.ok()) return work.status();
    works_.push_back(*std::move(work));
  }
  tokenize_ = absl::Now() - before;
  calls_.metrics_.Tokenized(tokenize_, request_.text_bytes);

  int64_t cost = 0;
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (TextWork& text : works_) {
    for (SegmentWork& segment : text.segments) {
      auto sequence = std::make_unique<Sequence>();
      const auto source_tokens = static_cast<int>(segment.source.size());
      sequence->input.source = segment.source;
      sequence->input.options =
          MergeOptions(request_.model->bundle, request_.options, source_tokens);
      sequence->deadline = context_.deadline;
      sequence->cancelled = context_.cancelled;
      sequence->sink = std::make_unique<SegmentSink>(this->shared_from_this(), segment);
      cost += (int64_t{source_tokens} + sequence->input.options.max_target_tokens) *
              sequence->input.options.beam_size;
      sequences.push_back(std::move(sequence));
    }
  }
  if (absl::Status status = permit_->Charge(cost); !status.ok()) return status;
  open_ = static_cast<int>(sequences.size());
  // On success nothing here may be touched any more: the sinks may be at work.
  return AtField("request", "BEYOND_ENGINE", request_.model->scheduler->Submit(sequences));
}

template <typename Response>
void TextCalls::Call<Response>::SegmentDone(SegmentWork& work,
                                            absl::StatusOr<SequenceResult> result) {
  if (result.ok()) {
    work.result = *std::move(result);
    const model::Hypothesis& best = work.result.hypotheses.front();
    request_.model->metrics->SequenceFinished(
        work.result.times, static_cast<int>(work.source.size()),
        static_cast<int>(best.tokens.size()), best.ended_by_limit);
    if (slowest_.finished <= work.result.times.finished) slowest_ = work.result.times;
  } else if (status_.ok()) {
    status_ = result.status();
    context_.cancelled->store(true, std::memory_order_relaxed);  // the others would be for nothing
  }
  if (--open_ > 0) return;
  calls_.pool_.Run([self = this->shared_from_this()] { self->Assemble(); },
                   TextPool::Urgency::kAnswer);
}

template <typename Response>
void TextCalls::Call<Response>::Assemble() {
  if (status_.ok()) {
    FillReply(request_, works_, response_);
    linnet::v1::Timings& timings = *response_.mutable_timings();
    SetDuration(tokenize_, *timings.mutable_tokenize());
    SetDuration(slowest_.seated - slowest_.submitted, *timings.mutable_queue());
    SetDuration(slowest_.finished - slowest_.seated, *timings.mutable_decode());
    SetDuration(absl::Now() - context_.arrived, *timings.mutable_total());
  }
  End(std::move(status_));
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
                      Done done) {
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
    metrics_.Rejected(checked.status().code() == absl::StatusCode::kNotFound
                          ? RejectReason::kNotFound
                          : RejectReason::kInvalid);
    return refuse(checked.status());
  }
  absl::StatusOr<Permit> permit = admission_.Enter(static_cast<int64_t>(request.ByteSizeLong()));
  if (!permit.ok()) return refuse(permit.status());
  auto call = std::make_shared<Call<Response>>(*this, *std::move(checked), *std::move(permit),
                                               response, context, std::move(done));
  pool_.Run([call = std::move(call)] { call->Prepare(); }, TextPool::Urgency::kNewcomer);
}

void TextCalls::Translate(const linnet::v1::TranslateRequest& request,
                          linnet::v1::TranslateResponse& response, const CallContext& context,
                          Done done) {
  Start(request, response, context, std::move(done));
}

void TextCalls::Summarize(const linnet::v1::SummarizeRequest& request,
                          linnet::v1::SummarizeResponse& response, const CallContext& context,
                          Done done) {
  Start(request, response, context, std::move(done));
}

void TextCalls::ListModels(linnet::v1::ListModelsResponse& response) const {
  for (const auto& model : catalog_.models()) *response.add_models() = model->Describe();
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
