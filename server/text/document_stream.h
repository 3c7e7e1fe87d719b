#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/mutex.h"
#include "server/text/text_call.h"

namespace linnet::server {

// The messages of the two kinds of documents.
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

// One document on its way, without gRPC: lines in, results out, each line a call of its own.
//
// At most TextLimits::max_lines_under_way of its lines are in the server, from Take to Written, and
// it wants no message while there are; what the last message brought beyond that waits here. A line
// that the server is too busy for waits until another of the document has ended, and is refused
// only if there is none. A server that shuts down ends the document after the lines that it took.
//
// Thread-safe. Its lines share it with whoever made it, so that it may be let go at any time.
template <typename Types>
class DocumentStream : public std::enable_shared_from_this<DocumentStream<Types>> {
 public:
  using Lines = typename Types::Lines;
  using Result = typename Types::Result;

  // `on_change` is called on any thread, with no lock held, also within Take, when there may be a
  // result, room, or the end.
  DocumentStream(TextCalls& calls, absl::Time deadline, std::function<void()> on_change,
                 Caller caller = {});

  // Room for the lines of another message, and neither closed nor failed.
  bool wants_more() const;
  // One message of the document: what `read` fills, which asks for the memory of the message before
  // it is allocated. What is wrong with a message as a whole fails the document, and so does a
  // message for which there is no memory, unless it is small: for small ones every document has
  // memory of its own, so that it need not fail half-way.
  using Hold = absl::FunctionRef<absl::Status(int64_t)>;
  void Take(absl::FunctionRef<absl::Status(Lines&, Hold)> read);
  void Take(Lines message);
  // No further message will come.
  void Close();
  // Ends the document with this status once what is under way has ended.
  void Fail(absl::Status status);
  // Nobody wants the results any more.
  void Cancel();

  // The next result to write, in the order that was asked for.
  std::optional<Result> TakeResult();
  // It is written: its line has left.
  void Written();

  // The status to end with, once there is nothing more to come.
  std::optional<absl::Status> finished();
  // Lines that were answered, those with an error among them.
  int64_t lines() const;

 private:
  // A line that is in the server.
  struct Line {
    int64_t number = 0;  // in the document
    int64_t sequence_id = 0;
    typename Types::Request request;
    typename Types::Response response;
    std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
    bool accompanied = false;  // others were under way, at some time since it was
    // Its own, from when it is a call until its result is written, and before that of its message.
    std::shared_ptr<Permit> permit = nullptr;
    std::shared_ptr<Permit> message_permit = nullptr;
  };
  struct Filed {
    Result result;
    std::shared_ptr<Permit> permit;  // of its memory
  };
  using LineIt = typename std::list<Line>::iterator;

  // Holds memory for a message, of which so much is held already.
  absl::Status HoldMessage(int64_t held, int64_t bytes, std::shared_ptr<Permit>& permit);
  absl::Status Accept(Lines& message, std::shared_ptr<Permit> permit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Starts the lines that may start now.
  void Advance();
  // The next line to start, under way from now on; those that are blank are answered on the way.
  bool Next(LineIt& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Admit(Line& line);
  // Under way from now on, it may be in the way of the others, and they in its way.
  void SetOut(LineIt line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LineDone(LineIt line, absl::Status status);
  void File(int64_t number, Result result, std::shared_ptr<Permit> permit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndWith(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  TextCalls& calls_;
  const absl::Time deadline_;
  const std::function<void()> on_change_;
  const Caller caller_;  // all lines are one call

  mutable Mutex mu_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;  // the settings are there
  typename Types::Request settings_ ABSL_GUARDED_BY(mu_);
  bool keep_order_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<linnet::v1::DocumentLine> waiting_ ABSL_GUARDED_BY(mu_);
  std::list<Line> in_flight_ ABSL_GUARDED_BY(mu_);
  std::list<Line> refused_ ABSL_GUARDED_BY(mu_);  // until another has ended
  bool one_alone_ ABSL_GUARDED_BY(mu_) = false;   // all were refused: the next has no company
  std::list<Line> again_ ABSL_GUARDED_BY(mu_);    // were refused, and may be tried again
  std::map<int64_t, Filed> results_ ABSL_GUARDED_BY(mu_);             // by the number of their line
  std::deque<std::shared_ptr<Permit>> writing_ ABSL_GUARDED_BY(mu_);  // of results that were taken
  std::shared_ptr<Permit> permit_ ABSL_GUARDED_BY(mu_);               // for small messages
  std::shared_ptr<Permit> message_permit_ ABSL_GUARDED_BY(mu_);       // of the lines that wait
  std::shared_ptr<Permit> settings_permit_ ABSL_GUARDED_BY(mu_);      // of the message they came in
  int unwritten_ ABSL_GUARDED_BY(mu_) = 0;                            // taken, and not yet written
  int64_t next_number_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_result_ ABSL_GUARDED_BY(mu_) = 0;  // where the order is kept
  int64_t answered_ ABSL_GUARDED_BY(mu_) = 0;
  bool advancing_ ABSL_GUARDED_BY(mu_) = false;  // a thread is in Advance
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

extern template class DocumentStream<TranslateDocumentTypes>;
extern template class DocumentStream<SummarizeDocumentTypes>;

}  // namespace linnet::server
