#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/mutex.h"
#include "server/text/document_parts.h"
#include "server/text/text_call.h"

namespace linnet::server {

// The message types of the two kinds of documents.
struct TranslateDocumentTypes {
  using Request = linnet::v1::TranslateRequest;
  using Response = linnet::v1::TranslateResponse;
  using Lines = linnet::v1::TranslateDocumentRequest;
  using Result = linnet::v1::TranslateDocumentResponse;
  static void Start(TextCalls& calls, const Request& request, Response& response,
                    const CallContext& context, TextCalls::Done done) {
    calls.Translate(request, response, context, std::move(done));
  }
};
struct SummarizeDocumentTypes {
  using Request = linnet::v1::SummarizeRequest;
  using Response = linnet::v1::SummarizeResponse;
  using Lines = linnet::v1::SummarizeDocumentRequest;
  using Result = linnet::v1::SummarizeDocumentResponse;
  static void Start(TextCalls& calls, const Request& request, Response& response,
                    const CallContext& context, TextCalls::Done done) {
    calls.Summarize(request, response, context, std::move(done));
  }
};

// One document call without gRPC: lines in, results out. Each line is decoded as a call of its own.
//
// At most TextLimits::max_inflight_lines lines are in flight, from Take to Written. While there
// are as many, wants_more is false, and further lines of the last message wait here. A line that is
// rejected because the server is busy waits until another line of the document has ended, and fails
// only if there is none. Until it is retried, no other line starts and no message is read. When the
// server shuts down, the document ends after the lines that were started.
//
// Thread-safe. Its lines share it with its owner, which may release it at any time.
template <typename Types>
class DocumentStream : public OpenDocument,
                       public std::enable_shared_from_this<DocumentStream<Types>> {
 public:
  using Lines = typename Types::Lines;
  using Result = typename Types::Result;

  // `on_change` is called on any thread, with no lock held, possibly within Take, when a result,
  // room for a message or the end may be available. A call that was `refused` before is a document
  // that has failed, and holds no memory.
  DocumentStream(TextCalls& calls, absl::Time deadline, std::function<void()> on_change,
                 Caller caller = {}, absl::Status refused = absl::OkStatus());

  // True if there is room for the lines of another message, no line waits to be retried, and the
  // document is neither closed nor failed.
  bool wants_more() const;
  // Takes one message of the document. `read` fills it and calls Hold for the memory of the message
  // before it allocates. An invalid message fails the document. So does a message without memory,
  // unless it is small: each document has a reserve for small messages, so that it does not fail
  // half-way.
  using Hold = absl::FunctionRef<absl::Status(int64_t)>;
  void Take(absl::FunctionRef<absl::Status(Lines&, Hold)> read);
  void Take(Lines message);
  // Ends the input: no further message will come.
  void Close();
  // Ends the document with this status once the lines in flight have ended.
  void Fail(absl::Status status);
  void Drain() override;
  // Cancels all lines: the client no longer wants the results.
  void Cancel();

  // Returns the next result to write, in the order that the client chose.
  std::optional<Result> TakeResult();
  // Reports that the result was written; its line is no longer in flight.
  void Written();

  // Returns the final status once all results are written.
  std::optional<absl::Status> finished();
  // Number of lines answered, including those with an error.
  int64_t lines() const;

 private:
  using Window = LineWindow<Types>;
  using Line = typename Window::Iterator;

  // Holds `bytes` more memory for a message that holds `held` already.
  absl::Status HoldMessage(int64_t held, int64_t bytes, std::shared_ptr<Permit>& permit);
  absl::Status Accept(Lines& message, std::shared_ptr<Permit> permit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Starts as many lines as may start now.
  void Advance();
  // Puts the next line into the window; blank lines before it are answered directly.
  std::optional<Line> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes the request of a line, once its memory is admitted.
  absl::Status Admit(Line line);
  void LineDone(Line line, absl::Status status);
  // Stores the result of a line, which is no longer in flight then.
  void Answer(Line line, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the document with this status at once: drops results and waiting lines, and cancels those
  // in flight.
  void Drop(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndWith(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  TextCalls& calls_;
  const absl::Time deadline_;
  const std::function<void()> on_change_;
  const Caller caller_;  // all lines count as one call

  mutable Mutex mu_;
  LineReader<typename Types::Request> reader_ ABSL_GUARDED_BY(mu_);
  Window window_ ABSL_GUARDED_BY(mu_);
  ResultWriter<Result> writer_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Permit> permit_ ABSL_GUARDED_BY(mu_);  // for small messages
  bool advancing_ ABSL_GUARDED_BY(mu_) = false;          // a thread is in Advance
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

extern template class DocumentStream<TranslateDocumentTypes>;
extern template class DocumentStream<SummarizeDocumentTypes>;

}  // namespace linnet::server
