#pragma once

#include <algorithm>
#include <map>
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

// One document, over as many streams as it takes: each line is kept until its result has come, so
// that the next stream can continue it. Four threads use it: one takes lines from the caller for
// the whole document; for each stream the caller's thread reads results, a writer sends lines, and
// a watchdog cancels a stream that stalls.
template <typename Lines, typename Result>
class Document {
 public:
  using Stream = grpc::ClientReaderWriter<Lines, Result>;
  static constexpr size_t kMaxInFlight = 256;
  using Response = std::decay_t<decltype(std::declval<Result>().response())>;

  // A stream is cancelled if the server owes a result, or after the last one the end, for
  // `stall_timeout`.
  template <typename Settings>
  Document(const Settings& settings, const NextLine& next_line, const OnLine<Response>& on_line,
           absl::Duration stall_timeout)
      : on_line_(on_line), stall_timeout_(stall_timeout) {
    *first_.mutable_settings() = settings;
    first_.set_keep_order(true);
    next_line_ = next_line;
  }

  // Waits until the caller's function has returned.
  ~Document() {
    {
      absl::MutexLock lock(&mu_);
      closed_ = true;
    }
    if (taker_.joinable()) taker_.join();
  }

  // Sends every line without a result, and more, until the stream ends.
  grpc::Status Run(std::unique_ptr<Stream> stream, grpc::ClientContext* context) {
    {
      absl::MutexLock lock(&mu_);
      read_ = written_ = false;
      in_flight_ = 0;
    }
    if (!taker_.joinable()) taker_ = std::thread([this] { Take(); });
    std::thread writer([&] { Write(*stream); });
    std::thread watch([&] { Watch(context); });
    Read(*stream, context);
    {
      absl::MutexLock lock(&mu_);
      read_ = true;
    }
    watch.join();
    writer.join();
    const grpc::Status status = stream->Finish();
    absl::MutexLock lock(&mu_);
    // The server may have ended the stream well before it was cancelled. That is an answer, unless
    // the caller refused a line of it or gave one that was not sent.
    const bool ended = status.error_code() == grpc::StatusCode::CANCELLED ||
                       (status.ok() && why_.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
    if (!why_.ok() && ended) return why_;
    // A connection that was lost after the last result has nothing to continue.
    const bool lost = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    return lost && all_taken_ && lines_.empty() ? why_ : status;
  }

  // True once `on_line` has returned false.
  bool refused() {
    absl::MutexLock lock(&mu_);
    return refused_;
  }

  // Returns whether a result has come since the last time.
  bool TakeProgress() {
    absl::MutexLock lock(&mu_);
    return std::exchange(progressed_, false);
  }

 private:
  void Take() {
    // The server bounds its lines in flight as well, but HTTP/2 windows grow to megabytes.
    const auto room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return closed_ || lines_.size() < kMaxInFlight;
    };
    for (int64_t index = 0;; ++index) {
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(&room));
        if (closed_) return;
      }
      std::optional<std::string> line = next_line_();
      const absl::Status valid = line.has_value() ? CheckUtf8("line", *line) : absl::OkStatus();
      absl::MutexLock lock(&mu_);
      if (!valid.ok()) {
        // It would end the whole stream with an unspecific error. The document ends here: the lines
        // before get their results.
        why_ = {grpc::StatusCode::INVALID_ARGUMENT,
                "line " + std::to_string(index + 1) + ": " + std::string(valid.message())};
      }
      all_taken_ = !line.has_value() || !valid.ok();
      if (all_taken_) return;
      lines_.emplace(index, *std::move(line));
    }
  }

  void Write(Stream& stream) {
    bool open = stream.Write(first_);
    int64_t next = 0;
    const auto ready = [this, &next]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return read_ || all_taken_ || lines_.lower_bound(next) != lines_.end();
    };
    while (open) {
      Lines message;
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(&ready));
        const auto line = lines_.lower_bound(next);
        if (read_ || line == lines_.end()) break;
        v1::DocumentLine& sent = *message.add_lines();
        sent.set_sequence_id(line->first);
        sent.set_text(line->second);
        next = line->first + 1;
        if (in_flight_++ == 0) progress_ = absl::Now();
      }
      open = stream.Write(message);
    }
    if (!open) return;
    {
      absl::MutexLock lock(&mu_);
      written_ = true;
      if (in_flight_ <= 0) progress_ = absl::Now();
    }
    stream.WritesDone();
  }

  void Read(Stream& stream, grpc::ClientContext* context) {
    bool wanted = true;
    for (Result result; stream.Read(&result);) {
      {
        absl::MutexLock lock(&mu_);
        --in_flight_;
        in_callback_ = true;
        progressed_ = true;
        lines_.erase(result.sequence_id());
      }
      if (wanted) {
        wanted = result.has_error()
                     ? on_line_(result.sequence_id(), FromRpc(result.error()))
                     : on_line_(result.sequence_id(), std::move(*result.mutable_response()));
      }
      absl::MutexLock lock(&mu_);
      if (!wanted) {
        refused_ = true;
        if (why_.ok()) why_ = {grpc::StatusCode::CANCELLED, "cancelled by the reader"};
        context->TryCancel();
      }
      in_callback_ = false;
      progress_ = absl::Now();
    }
  }

  void Watch(grpc::ClientContext* context) {
    absl::MutexLock lock(&mu_);
    while (!read_) {
      // The time that `on_line` takes is not the server's.
      const bool waits = (in_flight_ > 0 || written_) && !in_callback_;
      const absl::Time end = waits ? progress_ + stall_timeout_ : absl::InfiniteFuture();
      if (absl::Now() >= end) {
        if (why_.ok()) why_ = {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
        context->TryCancel();
        return;
      }
      // Wakes up at least once a second to see whether it waits for the server.
      const auto is_read = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return read_; };
      mu_.AwaitWithDeadline(
          absl::Condition(&is_read),
          std::min(end, absl::Now() + std::min(stall_timeout_, absl::Seconds(1))));
    }
  }

  Lines first_;  // the settings
  NextLine next_line_;
  const OnLine<Response>& on_line_;
  const absl::Duration stall_timeout_;

  absl::Mutex mu_;
  std::map<int64_t, std::string> lines_ ABSL_GUARDED_BY(mu_);  // without a result, by their index
  bool all_taken_ ABSL_GUARDED_BY(mu_) = false;                // the caller has no more lines
  bool closed_ ABSL_GUARDED_BY(mu_) = false;                   // no more lines are wanted
  bool refused_ ABSL_GUARDED_BY(mu_) = false;                  // the caller wants no more results
  bool progressed_ ABSL_GUARDED_BY(mu_) = false;               // see TakeProgress
  grpc::Status why_ ABSL_GUARDED_BY(mu_);                      // why this side ended the document
  // State of the current stream:
  int64_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;     // lines sent without a result
  bool in_callback_ ABSL_GUARDED_BY(mu_) = false;  // the reader is in `on_line_`
  absl::Time progress_ ABSL_GUARDED_BY(mu_);   // time of the last result or first line in flight
  bool written_ ABSL_GUARDED_BY(mu_) = false;  // all lines were sent: the server ends the stream
  bool read_ ABSL_GUARDED_BY(mu_) = false;     // the stream was read to its end
  std::thread taker_;
};

}  // namespace linnet::client
