#pragma once

#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>

#include "server/base/errors.h"
#include "server/base/mutex.h"
#include "server/rpc/single_request_call.h"
#include "server/text/part_queue.h"

namespace linnet::server {

// A call whose answer is a stream of parts and then the response.
//
// One write is in flight at a time. Meanwhile parts of the same segment are merged, so a slow
// reader never makes the server buffer more than the answer. Nothing is touched after a write once
// the call has ended.
template <typename StreamRequest, typename Request, typename Response, typename StreamResponse>
class StreamCall final : public SingleRequestCall<StreamRequest, Response> {
  using Base = SingleRequestCall<StreamRequest, Response>;
  using Base::buffer_;
  using Base::record_;
  using Base::request_;
  using Base::response_;

 public:
  using Start = void (TextCalls::*)(const Request&, Response&, const CallContext&,
                                    TextCalls::OnPart, TextCalls::Done);

  StreamCall(TextCalls& calls, Start start, const CallServices& services, Method method,
             grpc::CallbackServerContext& context)
      : Base(services, method, context), calls_(calls), start_(start) {
    this->Read();
  }

  void OnWriteDone(bool ok) override {
    // Without a reader decoding is useless; End is still called.
    if (!ok) this->cancelled_->Cancel();
    record_.WriteEnds();
    Step(/*written=*/true);
  }

 private:
  void Begin(const CallContext& context) override {
    (calls_.*start_)(
        request_.request(), response_, context,
        [this](linnet::v1::TextPart part) { Part(std::move(part)); },
        [this](const absl::Status& status) {
          // The request is a field of another message here.
          End(Renamed("", "request.", status));
        });
  }

  void Part(linnet::v1::TextPart part) {
    {
      MutexLock lock(mu_);
      parts_.Push(std::move(part));
    }
    Step();
  }

  void End(absl::Status status) override { Step(/*written=*/false, std::move(status)); }

  // Writes the next part, or the response, or finishes. Decides under the lock, acts after it. Once
  // `ended` is set and the lock released, another thread may finish and delete the call, unless
  // this one has set writing_.
  void Step(bool written = false, std::optional<absl::Status> ended = std::nullopt) {
    std::optional<absl::Status> end;
    {
      MutexLock lock(mu_);
      if (ended.has_value()) ended_ = std::move(ended);
      if (written) writing_ = false;
      if (writing_) return;
      // After an error the unsent parts are dropped.
      const bool failed = !unwritten_.ok() || (ended_.has_value() && !ended_->ok());
      std::optional<linnet::v1::TextPart> part;
      if (!failed) part = parts_.Pop();
      const bool has_part = part.has_value();
      if (!has_part && !ended_.has_value()) return;
      writing_ = true;  // stays set after the end
      if (has_part) {
        unwritten_ = Serialize(*std::move(part));
        if (!unwritten_.ok() && !ended_.has_value()) {
          this->cancelled_->Cancel();  // then End is called
          writing_ = false;
          return;
        }
      }
      if (!unwritten_.ok()) {
        end = unwritten_;
      } else if (!has_part) {
        end = *ended_;
      }
    }
    if (end.has_value()) return EndNow(*std::move(end));
    record_.WriteBegins();
    record_.Headers();
    this->StartWrite(&buffer_);
  }

  absl::Status Serialize(linnet::v1::TextPart part) {
    try {
      StreamResponse message;
      *message.mutable_part() = std::move(part);
      return SerializeTo(message, buffer_);
    } catch (...) {  // nobody above would end the call
      return ErrorOfException();
    }
  }

  void EndNow(absl::Status status) {
    StreamResponse last;
    try {
      if (status.ok()) last.mutable_response()->Swap(&response_);
    } catch (...) {
      status = ErrorOfException();
    }
    this->FinishWith(std::move(status), last, request_.request());
  }

  TextCalls& calls_;
  const Start start_;

  Mutex mu_;
  PartQueue parts_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mu_);
  absl::Status unwritten_ ABSL_GUARDED_BY(mu_);  // error of a part that could not be serialised
};

}  // namespace linnet::server
