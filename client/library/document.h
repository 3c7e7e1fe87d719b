#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/library/client.h"
#include "client/library/grpc_status.h"
#include "client/library/utf8.h"
#include "grpcpp/grpcpp.h"

namespace linnet::client {

// The stream of one document. Three threads use it: the caller's reads results, a writer sends
// lines, and a watchdog cancels a stream that stalls.
template <typename Lines, typename Result>
class Document {
 public:
  using Stream = grpc::ClientReaderWriter<Lines, Result>;
  static constexpr int64_t kMaxInFlight = 256;
  using Response = std::decay_t<decltype(std::declval<Result>().response())>;

  // The stream is cancelled if the server owes a result, or after the last one the end, for
  // `stall_timeout`.
  Document(std::unique_ptr<Stream> stream, grpc::ClientContext* context,
           absl::Duration stall_timeout)
      : stream_(std::move(stream)), context_(context), stall_timeout_(stall_timeout) {}

  template <typename Settings>
  grpc::Status Run(const Settings& settings, const NextLine& next_line,
                   const OnLine<Response>& on_line) {
    std::thread writer([&] { Write(settings, next_line); });
    std::thread watch([&] { Watch(); });
    Read(on_line);
    {
      absl::MutexLock lock(&mu_);
      read_ = true;
    }
    watch.join();
    writer.join();
    const grpc::Status status = stream_->Finish();
    absl::MutexLock lock(&mu_);
    // The server may have ended the stream well before it was cancelled. That is an answer, unless
    // the caller refused a line of it or gave one that was not sent.
    const bool ended = status.error_code() == grpc::StatusCode::CANCELLED ||
                       (status.ok() && why_.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
    return !why_.ok() && ended ? why_ : status;
  }

 private:
  template <typename Settings>
  void Write(const Settings& settings, const NextLine& next_line) {
    Lines first;
    *first.mutable_settings() = settings;
    first.set_keep_order(true);
    bool open = stream_->Write(first);
    for (int64_t index = 0; open; ++index) {
      std::optional<std::string> line = next_line();
      if (!line.has_value()) break;
      // A string that is not UTF-8 would end the whole stream with an unspecific error.
      if (absl::Status status = CheckUtf8("line", *line); !status.ok()) {
        // The stream ends here: the lines before get their results.
        absl::MutexLock lock(&mu_);
        why_ = {grpc::StatusCode::INVALID_ARGUMENT,
                "line " + std::to_string(index + 1) + ": " + std::string(status.message())};
        break;
      }
      Lines message;
      v1::DocumentLine& sent = *message.add_lines();
      sent.set_sequence_id(index);
      sent.set_text(*std::move(line));
      {
        absl::MutexLock lock(&mu_);
        // The server bounds its lines in flight as well, but HTTP/2 windows grow to megabytes.
        const auto room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
          return in_flight_ < kMaxInFlight || read_;
        };
        mu_.Await(absl::Condition(&room));
        if (in_flight_++ == 0) progress_ = absl::Now();
      }
      open = stream_->Write(message);
    }
    if (!open) return;
    {
      absl::MutexLock lock(&mu_);
      written_ = true;
      if (in_flight_ <= 0) progress_ = absl::Now();
    }
    stream_->WritesDone();
  }

  void Read(const OnLine<Response>& on_line) {
    bool wanted = true;
    for (Result result; stream_->Read(&result);) {
      {
        absl::MutexLock lock(&mu_);
        --in_flight_;
        in_callback_ = true;
      }
      if (wanted) {
        wanted = result.has_error()
                     ? on_line(result.sequence_id(), FromRpc(result.error()))
                     : on_line(result.sequence_id(), std::move(*result.mutable_response()));
        if (!wanted) End({grpc::StatusCode::CANCELLED, "cancelled by the reader"});
      }
      absl::MutexLock lock(&mu_);
      in_callback_ = false;
      progress_ = absl::Now();
    }
  }

  void Watch() {
    absl::MutexLock lock(&mu_);
    while (!read_) {
      // The time that `on_line` takes is not the server's.
      const bool waits = (in_flight_ > 0 || written_) && !in_callback_;
      const absl::Time end = waits ? progress_ + stall_timeout_ : absl::InfiniteFuture();
      if (absl::Now() >= end) {
        if (why_.ok()) why_ = {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
        context_->TryCancel();
        return;
      }
      // Wakes up at least once a second to see whether it waits for the server.
      const auto is_read = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return read_; };
      mu_.AwaitWithDeadline(
          absl::Condition(&is_read),
          std::min(end, absl::Now() + std::min(stall_timeout_, absl::Seconds(1))));
    }
  }

  void End(const grpc::Status& why) {
    absl::MutexLock lock(&mu_);
    if (why_.ok()) why_ = why;
    context_->TryCancel();
  }

  const std::unique_ptr<Stream> stream_;
  grpc::ClientContext* const context_;
  const absl::Duration stall_timeout_;

  absl::Mutex mu_;
  int64_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;     // lines without a result
  bool in_callback_ ABSL_GUARDED_BY(mu_) = false;  // the reader is in `on_line`
  absl::Time progress_ ABSL_GUARDED_BY(mu_);   // time of the last result or first line in flight
  bool written_ ABSL_GUARDED_BY(mu_) = false;  // all lines were sent: the server ends the stream
  bool read_ ABSL_GUARDED_BY(mu_) = false;     // the stream was read to its end
  grpc::Status why_ ABSL_GUARDED_BY(mu_);      // why this side ended the stream
};

}  // namespace linnet::client
