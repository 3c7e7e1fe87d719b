#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/base/mutex.h"
#include "server/rpc/call_record.h"
#include "server/rpc/raw_methods.h"
#include "server/text/document_stream.h"

namespace linnet::server {

// One document call: gRPC's reads and writes around a DocumentStream, one of each in flight at a
// time. It reads only while the stream wants more, so HTTP/2 flow control slows down a client that
// sends faster than its lines are translated, or does not read their results.
//
// It owns itself until gRPC is done with it. Callbacks of the stream that come later find an
// expired weak pointer.
template <typename Types>
class DocumentCall final : public CallReactor,
                           public std::enable_shared_from_this<DocumentCall<Types>> {
 public:
  static CallReactor* Begin(TextCalls& calls, const CallServices& services, Method method,
                            grpc::CallbackServerContext& context) {
    auto call = std::make_shared<DocumentCall>(services, method, context);
    call->self_ = call;
    call->stream_ = std::make_shared<DocumentStream<Types>>(
        calls, CallDeadline(context),
        [weak = call->weak_from_this()] {
          if (auto self = weak.lock()) self->Step();
        },
        call->record_.caller(), call->record_.refused());
    calls.DrainLater(call->stream_);
    call->Step();
    return call.get();
  }

  DocumentCall(const CallServices& services, Method method, grpc::CallbackServerContext& context)
      : record_(services, method, context) {}

  void OnReadDone(bool ok) override {
    record_.ReadEnds(ok);
    if (ok) {
      // gRPC would catch what nobody has caught here, and the call would never end.
      try {
        Take();
      } catch (...) {
        LogException("request_not_read");
        stream_->Fail(ErrorOfException());
      }
    } else {
      stream_->Close();
    }
    {
      MutexLock lock(mu_);
      reading_ = false;
    }
    Step();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) stream_->Cancel();
    record_.WriteEnds();
    {
      MutexLock lock(mu_);
      writing_ = false;
    }
    stream_->Written();
    Step();
  }
  void OnCancel() override { stream_->Cancel(); }
  void OnDone() override { const std::shared_ptr<DocumentCall> last = std::move(self_); }

 private:
  void Take() {
    const auto bytes = static_cast<int64_t>(incoming_.Length());
    stream_->Take([&](typename Types::Lines& message, auto hold) {
      absl::Status status = ParseBuffer(incoming_, message, hold);
      MutexLock lock(mu_);
      facts_.request_bytes += bytes;
      if (message.has_settings()) facts_.labels = LabelText(message.settings().labels());
      // Admission counts its own rejections.
      if (!status.ok() && !absl::IsResourceExhausted(status))
        record_.metrics().Rejected(RejectReason::kInvalid);
      return status;
    });
  }

  // Starts the next read and write. Decides under the lock, acts after it. The end does not wait
  // for a read in flight: gRPC ends it with the call.
  void Step() {
    CallFacts facts;
    bool read = false;
    bool first = false;
    bool write = false;
    absl::Status lost;  // why a result could not be written
    std::optional<absl::Status> end;
    {
      MutexLock lock(mu_);
      if (ended_) return;
      if (!writing_) {
        try {
          if (auto result = stream_->TakeResult(); result.has_value()) {
            writing_ = true;
            lost = SerializeTo(*result, outgoing_);
            write = lost.ok();
          }
        } catch (...) {
          lost = ErrorOfException();
        }
      }
      if (!writing_ && starting_reads_ == 0) end = stream_->finished();
      ended_ = end.has_value();
      if (!ended_ && !reading_ && stream_->wants_more()) {
        read = reading_ = true;
        ++starting_reads_;
        first = !std::exchange(begun_, true);
      }
      if (ended_) facts = std::move(facts_);
    }
    if (!lost.ok()) FailDocument(std::move(lost));
    if (end.has_value()) {
      facts.contents = stream_->lines();
      const grpc::Status result = record_.Ended(*std::move(end), facts);
      record_.WriteBegins();
      return this->Finish(result);
    }
    if (write) {
      record_.Headers();
      record_.WriteBegins();
      this->StartWrite(&outgoing_);
    }
    if (!read) return;
    // Between later messages the client may wait for as long as the connection lives.
    if (first) record_.ReadBegins();
    this->StartRead(&incoming_);
    {
      MutexLock lock(mu_);
      --starting_reads_;
    }
    Step();
  }

  // Fails the document; a result that was taken counts as written.
  void FailDocument(absl::Status why) {
    bool taken = false;
    {
      MutexLock lock(mu_);
      taken = std::exchange(writing_, false);
    }
    stream_->Fail(std::move(why));
    if (taken) stream_->Written();
  }

  std::shared_ptr<DocumentCall> self_;
  CallRecord record_;
  std::shared_ptr<DocumentStream<Types>> stream_;
  grpc::ByteBuffer incoming_;  // of the read in flight
  grpc::ByteBuffer outgoing_;  // of the write in flight

  Mutex mu_;
  CallFacts facts_ ABSL_GUARDED_BY(mu_);
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  // Calls of StartRead that have not returned yet: while one is about to, another thread may get
  // its message and start the next read.
  int starting_reads_ ABSL_GUARDED_BY(mu_) = 0;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;  // the first read
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace linnet::server
