#pragma once

#include <cerrno>
#include <cstdint>
#include <deque>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/cli.h"
#include "client/cli/commands.h"
#include "client/cli/flags/flag_names.h"
#include "client/cli/text/error_attribution.h"
#include "client/cli/text/print.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/resume_record.h"
#include "client/cli/text/text_source.h"
#include "client/library/client.h"
#include "proto/status_macros.h"

namespace linnet::client {

// A request is large enough to fill a batch of the server and small enough to show progress.
// Several are in flight at once, so that the server does not wait for the client between them.
inline constexpr size_t kTextsPerRequest = 64;
inline constexpr size_t kBytesPerRequest = 64 << 10;
inline constexpr size_t kMaxRequestsInFlight = 4;

// The point where a run resumes: after the texts that an earlier run answered.
struct ResumePoint {
  int64_t texts = 0;     // texts that the output answers already
  Checkpoint known;      // the texts that the record covers
  bool recorded = true;  // false: no record says from which input the output was made
};

// Reads texts, sends them in requests and writes the answers in the order of the texts. Blank texts
// are not sent. If a text is refused, the run either ends after the texts before it, or leaves its
// answer empty and continues (TextOptions::skip_refused). `Kind` is one of text_kinds.h.
//
// Not thread-safe; the calls run in threads of std::async.
template <typename Kind>
class BatchRunner {
 public:
  using Request = typename Kind::Request;
  using Response = typename Kind::Response;

  // `record` receives a checkpoint after each write; it may be null.
  BatchRunner(Client& client, const TextOptions& options, Request prototype,
              const Environment& environment, Progress& progress, ResumeRecord* record)
      : client_(client),
        form_(options.form),
        skip_refused_(options.skip_refused),
        lines_(options.input.arguments.empty() && options.input.shape != Shape::kWhole),
        may_resume_(options.resumable),
        call_(options.call),
        prototype_(std::move(prototype)),
        environment_(environment),
        progress_(progress),
        record_(record),
        source_(options.input, environment.in, environment.stop_event) {}

  // Skips the texts of an earlier run, or returns why the run cannot resume. Call it before Run.
  // Writes nothing.
  absl::Status Resume(const ResumePoint& point) {
    resume_point_ = point;
    RETURN_IF_ERROR(source_.Skip(point.texts, point.known));
    if (point.recorded) return absl::OkStatus();
    const absl::StatusOr<std::optional<Text>> next = source_.Next();
    if (!next.ok() || !next->has_value()) return next.status();
    return absl::FailedPreconditionError(
        absl::StrCat("the output has ", point.texts,
                     " lines, and no record beside it says of which input: --force continues after "
                     "them all the same"));
  }

  int Run() {
    begin_ = absl::Now();
    advance_.first_byte = source_.bytes_read();
    advance_.total_bytes = source_.TotalBytes(environment_.in_bytes);
    if (const int exit = Work(); exit != kExitOk) return exit;
    progress_.Finish(advance_);
    if (record_ != nullptr) record_->Remove();
    const Checkpoint& earlier = resume_point_.known;
    TellRefused(earlier.refused, absl::StrCat("the ", earlier.texts, " texts of an earlier run"));
    TellRefused(refused_, absl::StrCat(answered_ + refused_, " texts"));
    return earlier.refused + refused_ == 0 ? kExitOk : kExitRefused;
  }

  // Cancels the requests in flight after an error: the destructors of their futures would wait.
  ~BatchRunner() {
    if (!in_flight_.empty()) client_.Cancel();
  }

 private:
  struct Entry {
    Text text;
    absl::Status refusal = absl::OkStatus();  // the server's error for this text
    std::string field = "";                   // the field that the error names

    const absl::Status& problem() const { return text.problem.ok() ? refusal : text.problem; }
    bool is_sent() const { return problem().ok() && !IsBlank(text); }
  };

  struct Batch {
    std::vector<Entry> entries;
    std::vector<size_t> sent;                // indices into entries, in the order of the contents
    std::shared_ptr<const Request> request;  // shared with the thread that sends it
    std::future<absl::StatusOr<Response>> response;  // only if any was sent
  };

  int Work() {
    absl::Status read;
    bool more = true;
    while (more) {
      std::vector<Entry> entries;
      more = Fill(&entries, &read);
      if (!entries.empty()) in_flight_.push_back(Begin(std::move(entries)));
      const size_t keep = more && source_.Ready() ? kMaxRequestsInFlight - 1 : 0;
      while (in_flight_.size() > keep) {
        if (const int exit = AnswerFirst(); exit != kExitOk) return exit;
      }
    }
    if (environment_.stop.stop_requested()) {
      progress_.Clear();
      return Fail(absl::CancelledError("cancelled"), ProgressNote("continues from there"),
                  environment_);
    }
    if (read.ok()) return kExitOk;
    progress_.Clear();
    const std::string note = ProgressNote("continues from there");
    return FailLocally(absl::Status(read.code(), absl::StrCat(read.message(), note)), environment_);
  }

  void TellRefused(int64_t refused, const std::string& of) {
    if (refused == 0) return;
    environment_.err << "linnet: " << refused << " of " << of
                     << (refused == 1 ? " was refused: " : " were refused: ")
                     << (IsJson(form_) ? "there is an \"error\" in place of each answer\n"
                                       : "the place of each answer is empty\n");
  }

  // A note that ends an error: the number of answers so far. `resumed` says what the same command
  // does with --resume.
  std::string ProgressNote(const std::string& resumed) const {
    std::string note = AnsweredNote(answered_);
    if (refused_ > 0) absl::StrAppend(&note, "\n  and ", refused_, " refused");
    if (resume_point_.texts > 0) {
      absl::StrAppend(&note, "\n  after the ", resume_point_.texts, " of an earlier run");
    }
    if (may_resume_) absl::StrAppend(&note, "\n  the same command with --resume ", resumed);
    return note;
  }

  // Ends a run at a refused text.
  int FailAt(const Entry& entry) {
    progress_.Clear();
    std::string note = ProgressNote("--on-error skip continues after it");
    if (lines_ && !may_resume_) {
      absl::StrAppend(&note, "\n  with --on-error skip the run continues after it");
    }
    if (entry.refusal.ok()) {
      const absl::Status& problem = entry.text.problem;
      return FailLocally(absl::Status(problem.code(), absl::StrCat(problem.message(), note)),
                         environment_);
    }
    const std::string place = absl::StrCat("\n  ", entry.field, " is ", entry.text.name);
    return Fail(entry.refusal, place + note, environment_);
  }

  // Adds texts until there are enough for a request or the next one is not available yet. Returns
  // false after the last text.
  bool Fill(std::vector<Entry>* entries, absl::Status* error) {
    size_t bytes = 0;
    do {
      absl::StatusOr<std::optional<Text>> read = source_.Next();
      if (environment_.stop.stop_requested()) return false;  // it may have been cut short
      if (!read.ok()) *error = read.status();
      if (!read.ok() || !read->has_value()) return false;
      Text& text = **read;
      if (text.problem.ok() && !IsBlank(text)) text.problem = Kind::Check(text);
      const bool last = !text.problem.ok() && !skip_refused_;
      bytes += text.content.size() + text.record.size();
      entries->push_back({std::move(text)});
      if (last) return false;
    } while (entries->size() < kTextsPerRequest && bytes < kBytesPerRequest && source_.Ready());
    return true;
  }

  // Sends the entries that are neither blank nor refused.
  Batch Begin(std::vector<Entry> entries) {
    Batch batch{std::move(entries), {}, nullptr, {}};
    auto request = std::make_shared<Request>(prototype_);
    for (size_t i = 0; i < batch.entries.size(); ++i) {
      if (!batch.entries[i].is_sent()) continue;
      Kind::Add(batch.entries[i].text, request.get());
      batch.sent.push_back(i);
    }
    batch.request = request;
    if (!batch.sent.empty()) {
      batch.response = std::async(std::launch::async, [this, request = batch.request] {
        return Kind::Call(client_, *request, call_);
      });
    }
    return batch;
  }

  absl::StatusOr<Response> Await(Batch& batch) {
    if (!batch.response.valid()) return Response();
    absl::StatusOr<Response> response = batch.response.get();
    // If the server is busy even after the client's retries, the other requests of this run may be
    // the reason: wait for them and send this one once more.
    if (absl::IsResourceExhausted(response.status()) && !in_flight_.empty()) {
      for (const Batch& other : in_flight_) {
        if (other.response.valid()) other.response.wait();
      }
      response = Kind::Call(client_, *batch.request, call_);
    }
    return response;
  }

  int AnswerFirst() {
    Batch batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    const absl::StatusOr<Response> response = Await(batch);
    if (response.ok()) return Write(batch, *response);
    const ErrorAttribution attribution =
        AttributeToTexts(response.status(), Kind::kField, batch.sent.size());
    switch (attribution.fault) {
      case Fault::kNoText:
        progress_.Clear();
        return Fail(response.status(), ProgressNote("continues from there"), environment_);
      case Fault::kOneText:
        SendWithout(std::move(batch), attribution.text, response.status());
        return kExitOk;
      case Fault::kTooMuchTogether:
        SendInHalves(std::move(batch));
        return kExitOk;
    }
    return kExitLocal;
  }

  void SendWithout(Batch batch, size_t refused, const absl::Status& refusal) {
    const size_t place = batch.sent[refused];
    Entry& entry = batch.entries[place];
    entry.refusal = refusal;
    entry.field = absl::StrCat(Kind::kField, "[", refused, "]");
    // If the run ends at this text, the texts after it are not needed.
    if (!skip_refused_) batch.entries.resize(place + 1);
    in_flight_.push_front(Begin(std::move(batch.entries)));
  }

  void SendInHalves(Batch batch) {
    const auto middle = batch.entries.begin() + batch.sent[batch.sent.size() / 2];
    std::vector<Entry> behind(std::make_move_iterator(middle),
                              std::make_move_iterator(batch.entries.end()));
    batch.entries.erase(middle, batch.entries.end());
    in_flight_.push_front(Begin(std::move(behind)));
    in_flight_.push_front(Begin(std::move(batch.entries)));
  }

  int Write(const Batch& batch, const Response& response) {
    int next = 0;
    const Entry* end = nullptr;   // the refused text that ends the run
    const Entry* last = nullptr;  // the last text that was written
    for (const Entry& entry : batch.entries) {
      if (!entry.problem().ok() && !skip_refused_) {
        end = &entry;
        break;
      }
      next += WriteOne(entry, response, next);
      last = &entry;
    }
    if (!environment_.out.flush()) {
      const int cause = errno;
      progress_.Clear();
      return FailToWrite(cause, environment_);
    }
    if (last != nullptr) {
      advance_.lines += last - batch.entries.data() + 1;
      advance_.bytes = last->text.end;
      if (record_ != nullptr)
        record_->Write({resume_point_.texts + advance_.lines, last->text.digest,
                        resume_point_.known.refused + refused_});
    }
    if (end != nullptr) return FailAt(*end);
    const absl::Time now = absl::Now();
    advance_.elapsed = now - begin_;
    progress_.Update(advance_, now);
    return kExitOk;
  }

  // Writes the answer to one text. Returns the number of answers consumed: 1 or 0.
  int WriteOne(const Entry& entry, const Response& response, int answer) {
    const Text& text = entry.text;
    if (!entry.problem().ok()) {
      PrintRefused(text, entry.problem(), form_, environment_.out);
      const std::string why = InFlags(RefusalText(entry.problem()));
      WriteNote(&refused_, "refused texts", entry.refusal.ok() ? why : text.name + ": " + why);
      return 0;
    }
    if (IsBlank(text)) {
      Response blank;
      Kind::AddBlank(text, &blank);
      PrintAnswer(text, blank, 0, form_, environment_.out);
      return 0;
    }
    PrintAnswer(text, response, answer, form_, environment_.out);
    const std::string note = Kind::Note(response, answer);
    if (!note.empty()) WriteNote(&notes_, "answers", text.name + ": " + note);
    ++answered_;
    return 1;
  }

  // Counts notes of a kind and writes the first few: a large file may cause very many.
  void WriteNote(int64_t* count, const char* kind, const std::string& note) {
    constexpr int64_t kMaxNotes = 20;
    if (++*count > kMaxNotes + 1) return;
    progress_.Clear();
    environment_.err << "linnet: ";
    if (*count <= kMaxNotes) {
      environment_.err << note << "\n";
    } else {
      environment_.err << "and more " << kind << " like these\n";
    }
  }

  Client& client_;
  const Form form_;
  const bool skip_refused_;
  const bool lines_;
  const bool may_resume_;
  const CallOptions call_;
  const Request prototype_;
  const Environment& environment_;
  Progress& progress_;
  ResumePoint resume_point_;
  ResumeRecord* const record_;
  TextSource source_;
  absl::Time begin_;
  Advance advance_;
  std::deque<Batch> in_flight_;
  int64_t answered_ = 0;
  int64_t refused_ = 0;
  int64_t notes_ = 0;
};

}  // namespace linnet::client
