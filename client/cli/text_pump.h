#pragma once

#include <cerrno>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/cli.h"
#include "client/cli/commands.h"
#include "client/cli/print.h"
#include "client/cli/progress.h"
#include "client/cli/text_source.h"
#include "client/library/client.h"

namespace linnet::client {

// A request is large enough to fill a batch of the server and small enough to see progress; some
// are under way at once, so that the server need not wait for us between them.
inline constexpr size_t kTextsPerRequest = 64;
inline constexpr size_t kBytesPerRequest = 64 << 10;
inline constexpr size_t kRequestsUnderWay = 4;

// Reads texts, sends them in requests, and writes the answers in the order of the texts. What is
// blank is not sent. `Kind` is one of text_kinds.h.
template <typename Kind>
class Pump {
 public:
  using Request = typename Kind::Request;
  using Response = typename Kind::Response;

  // `resumed` texts have their answers already.
  Pump(Client& client, const TextOptions& options, Request prototype,
       const Environment& environment, Progress& progress, int64_t resumed)
      : client_(client),
        form_(options.form),
        may_resume_(!options.output.empty() && options.input.shape != Shape::kWhole),
        call_(options.call),
        prototype_(std::move(prototype)),
        environment_(environment),
        progress_(progress),
        resumed_(resumed),
        source_(options.input, environment.in) {}

  int Run() {
    if (absl::Status status = source_.Skip(resumed_); !status.ok()) {
      return FailLocally(status, environment_);
    }
    begin_ = absl::Now();
    advance_.first_byte = source_.bytes_read();
    advance_.total_bytes = source_.TotalBytes(environment_.in_bytes);
    const int exit = Work();
    if (exit == kExitOk) progress_.Finish(advance_);
    return exit;
  }

  // Nobody waits for what is under way after an error, and a future's end would.
  ~Pump() {
    if (!under_way_.empty()) client_.Cancel();
  }

 private:
  int Work() {
    absl::Status read;
    bool more = true;
    while (more) {
      Batch batch;
      more = Fill(&batch, &read);
      if (!batch.texts.empty()) Send(std::move(batch));
      const size_t keep = more && source_.ready() ? kRequestsUnderWay - 1 : 0;
      while (under_way_.size() > keep) {
        if (const int exit = AnswerFirst(); exit != kExitOk) return exit;
      }
    }
    if (environment_.stop.stop_requested()) {
      progress_.Clear();
      return Fail(absl::CancelledError("cancelled"), HowFar(), environment_);
    }
    if (read.ok()) return kExitOk;
    progress_.Clear();
    return FailLocally(read, environment_);
  }

  // For the end of an error.
  std::string HowFar() const {
    std::string note = AnsweredNote(answered_);
    if (resumed_ > 0) absl::StrAppend(&note, "\n  behind the ", resumed_, " of an earlier run");
    if (may_resume_)
      absl::StrAppend(&note, "\n  the same command with --resume goes on from there");
    return note;
  }

  struct Batch {
    std::vector<Text> texts;
    std::vector<std::string> sent;  // names of those that are sent, in the order of the contents
    std::shared_ptr<const Request> request;          // shared with the thread that sends it
    std::future<absl::StatusOr<Response>> response;  // only if any was sent
  };

  // Adds texts until the batch is full or the next one is not there yet. False after the last text.
  bool Fill(Batch* batch, absl::Status* error) {
    size_t bytes = 0;
    do {
      absl::StatusOr<std::optional<Text>> text = source_.Next();
      if (!text.ok()) *error = text.status();
      if (!text.ok() || !text->has_value()) return false;
      if (!IsBlank(**text)) *error = Kind::Check(**text);
      if (!error->ok()) return false;
      bytes += (*text)->content.size();
      batch->texts.push_back(**std::move(text));
    } while (batch->texts.size() < kTextsPerRequest && bytes < kBytesPerRequest && source_.ready());
    return true;
  }

  void Send(Batch batch) {
    auto request = std::make_shared<Request>(prototype_);
    for (const Text& text : batch.texts) {
      if (IsBlank(text)) continue;
      Kind::Add(text, request.get());
      batch.sent.push_back(text.name);
    }
    batch.request = request;
    if (!batch.sent.empty()) {
      batch.response = std::async(std::launch::async, [this, request = batch.request] {
        return (client_.*Kind::kCall)(*request, call_);
      });
    }
    under_way_.push_back(std::move(batch));
  }

  absl::StatusOr<Response> Await(Batch& batch) {
    if (!batch.response.valid()) return Response();
    absl::StatusOr<Response> response = batch.response.get();
    // A server that is busy even after the client's retries may be busy with us: once more, alone.
    if (absl::IsResourceExhausted(response.status()) && !under_way_.empty()) {
      for (const Batch& other : under_way_) {
        if (other.response.valid()) other.response.wait();
      }
      response = (client_.*Kind::kCall)(*batch.request, call_);
    }
    return response;
  }

  int AnswerFirst() {
    Batch batch = std::move(under_way_.front());
    under_way_.pop_front();
    absl::StatusOr<Response> response = Await(batch);
    if (!response.ok()) {
      progress_.Clear();
      return Fail(response.status(),
                  absl::StrCat(PlaceNote(response.status(), batch.sent), HowFar()), environment_);
    }
    int next = 0;
    for (const Text& text : batch.texts) {
      if (IsBlank(text)) {
        PrintBlank(text);
        continue;
      }
      PrintAnswer(text, *response, next, form_, environment_.out);
      const std::string note = Kind::Note(*response, next++);
      if (!note.empty()) Tell(text.name + ": " + note);
      ++answered_;
    }
    if (!environment_.out.flush()) {
      const int cause = errno;
      progress_.Clear();
      return FailToWrite(cause, environment_);
    }
    advance_.lines += batch.texts.size();
    advance_.bytes = batch.texts.back().end;
    const absl::Time now = absl::Now();
    advance_.elapsed = now - begin_;
    progress_.Update(advance_, now);
    return kExitOk;
  }

  // Of a large file, a terminal or a log need not see all of them.
  void Tell(const std::string& note) {
    constexpr int64_t kMostNotes = 20;
    if (++notes_ > kMostNotes + 1) return;
    progress_.Clear();
    environment_.err << "linnet: " << (notes_ <= kMostNotes ? note : "and more answers like these")
                     << "\n";
  }

  void PrintBlank(const Text& text) {
    Response response;
    Kind::AddBlank(text, &response);
    PrintAnswer(text, response, 0, form_, environment_.out);
  }

  // Which text an error speaks of, if it names one by its number in the request.
  std::string PlaceNote(const absl::Status& status, const std::vector<std::string>& sent) const {
    const std::string error = ErrorText(status);
    for (size_t i = 0; i < sent.size(); ++i) {
      const std::string field = absl::StrCat(Kind::kField, "[", i, "]");
      if (absl::StrContains(error, field)) return absl::StrCat("\n  ", field, " is ", sent[i]);
    }
    return "";
  }

  Client& client_;
  const Form form_;
  const bool may_resume_;
  const CallOptions call_;
  const Request prototype_;
  const Environment& environment_;
  Progress& progress_;
  const int64_t resumed_;
  TextSource source_;
  absl::Time begin_;
  Advance advance_;
  std::deque<Batch> under_way_;
  int64_t answered_ = 0;
  int64_t notes_ = 0;
};

}  // namespace linnet::client
