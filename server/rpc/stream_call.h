#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <utility>

#include "server/base/errors.h"
#include "server/base/mutex.h"
#include "server/rpc/call_record.h"
#include "server/rpc/raw_methods.h"
#include "server/rpc/unary_call.h"
#include "server/text/part_queue.h"
#include "server/text/text_call.h"

namespace linnet::server {

// One call whose answer is a stream of parts and then the response.
//
// One write is under way at a time; meanwhile parts of the same segment become one, so that what
// waits for a slow reader is never more than the answer. It deletes itself when gRPC is done with
// it: so nothing is touched after Finish, and after a write once the call has ended.
template <typename StreamRequest, typename Request, typename Response, typename StreamResponse>
class StreamCall final : public CallReactor {
 public:
  using Start = void (TextCalls::*)(const Request&, Response&, const CallContext&,
                                    TextCalls::OnPart, TextCalls::Done);

  StreamCall(TextCalls& calls, Start start, const CallServices& services, Method method,
             grpc::CallbackServerContext& context)
      : calls_(calls),
        start_(start),
        record_(services, method, context),
        deadline_(DeadlineOf(context)),
        cancelled_(std::make_shared<Cancellation>()) {
    if (!record_.refused().ok()) {
      Ended(record_.refused());
      return;
    }
    record_.ReadBegins();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    record_.ReadEnds(ok);
    request_bytes_ = static_cast<int64_t>(message_.Length());
    absl::StatusOr<std::shared_ptr<Permit>> permit = record_.Admit(message_, request_);
    if (!permit.ok()) {
      Ended(permit.status());
      return;
    }
    permit_ = *std::move(permit);
    (calls_.*start_)(
        request_.request(), response_,
        {.arrived = record_.arrived(),
         .deadline = deadline_,
         .cancelled = cancelled_,
         .permit = permit_,
         .caller = record_.caller()},
        [this](linnet::v1::TextPart part) { Part(std::move(part)); },
        [this](const absl::Status& status) {
          // The request is part of another message here.
          Ended(Renamed("", "request.", status));
        });
  }

  // May run beside everything else, also before the constructor has returned.
  void OnCancel() override { cancelled_->Cancel(); }
  void OnWriteDone(bool ok) override {
    // Without a reader the decoding is for nothing; Ended comes all the same.
    if (!ok) cancelled_->Cancel();
    record_.WriteEnds();
    Step(/*written=*/true);
  }
  void OnDone() override { delete this; }

 private:
  void Part(linnet::v1::TextPart part) {
    {
      MutexLock lock(mu_);
      parts_.Push(std::move(part));
    }
    Step();
  }

  void Ended(absl::Status status) {
    {
      MutexLock lock(mu_);
      ended_ = std::move(status);
    }
    Step();
  }

  // Writes the next part, or the response, or finishes. Decides under the lock, acts after it.
  void Step(bool written = false) {
    std::optional<absl::Status> end;
    {
      MutexLock lock(mu_);
      if (written) writing_ = false;
      if (writing_) return;
      // After an error what is left unsent is worth nothing.
      const bool failed = ended_.has_value() && !ended_->ok();
      std::optional<linnet::v1::TextPart> part;
      if (!failed) part = parts_.Pop();
      if (!part.has_value() && !ended_.has_value()) return;
      writing_ = true;  // for good, at the end
      if (part.has_value()) {
        StreamResponse message;
        *message.mutable_part() = *std::move(part);
        SerializeTo(message, message_).IgnoreError();  // fails for messages beyond 2 GiB alone
      } else {
        end = *ended_;
      }
    }
    record_.WriteBegins();
    if (end.has_value()) return End(*std::move(end));
    record_.Headers();
    StartWrite(&message_);
  }

  void End(absl::Status status) {
    if (status.ok()) {
      StreamResponse last;
      last.mutable_response()->Swap(&response_);
      status = SerializeTo(last, message_);
    }
    const bool ok = status.ok();
    const grpc::Status result =
        record_.Ended(std::move(status), {.contents = ContentsOf(request_.request()),
                                          .request_bytes = request_bytes_,
                                          .labels = LabelsOf(request_.request())});
    StreamRequest().Swap(&request_);
    Response().Swap(&response_);
    if (ok) {
      StartWriteAndFinish(&message_, {}, result);
    } else {
      Finish(result);
    }
  }

  TextCalls& calls_;
  const Start start_;
  CallRecord record_;
  const absl::Time deadline_;
  int64_t request_bytes_ = 0;
  StreamRequest request_;
  Response response_;
  std::shared_ptr<Cancellation> cancelled_;
  grpc::ByteBuffer message_;        // of the request, then of the write in flight
  std::shared_ptr<Permit> permit_;  // until the answer is sent

  Mutex mu_;
  PartQueue parts_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
