#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/cli.h"
#include "client/cli/commands.h"
#include "client/cli/flags/flag_names.h"
#include "client/cli/request_window.h"
#include "client/cli/text/error_attribution.h"
#include "client/cli/text/notes.h"
#include "client/cli/text/print.h"
#include "client/cli/text/progress.h"
#include "client/cli/text_batch.h"
#include "client/command/text/resume_record.h"
#include "client/command/text/text_source.h"
#include "client/library/client.h"
#include "proto/status_macros.h"

namespace linnet::client {

inline constexpr size_t kBytesPerRequest = 64 << 10;

// The point where a run resumes: after the texts that an earlier run answered.
struct ResumePoint {
  int64_t texts = 0;     // texts that the output answers already
  Checkpoint known;      // the texts that the record covers
  bool recorded = true;  // false: no record says from which input the output was made
};

// Reads texts, sends them in requests and writes the answers in the order of the texts. Blank texts
// are not sent. If a text is refused, the run either ends after the texts before it, or leaves its
// answer empty and continues (TextOptions::skip_refused). A server that is too busy or too slow for
// the requests gets fewer and smaller ones (RequestWindow), and the run waits for it for
// TextOptions::busy_timeout. `Kind` is one of text_kinds.h.
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
        busy_timeout_(options.busy_timeout),
        call_(options.call),
        prototype_(std::move(prototype)),
        environment_(environment),
        progress_(progress),
        record_(record),
        source_(options.input, environment.in, environment.stop_event),
        refused_(environment.err, progress, "refused texts", options.quiet),
        notes_(environment.err, progress, "notes about answers", options.quiet) {}

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
    const int exit = Work();
    notes_.End();
    refused_.End();
    if (exit != kExitOk) return exit;
    progress_.Finish(advance_);
    if (record_ != nullptr) record_->Remove();
    const Checkpoint& earlier = resume_point_.known;
    PrintRefusedCount(earlier.refused,
                      absl::StrCat("the ", earlier.texts, " texts of an earlier run"));
    PrintRefusedCount(refused_.count(), absl::StrCat(answered_ + refused_.count(), " texts"));
    return earlier.refused + refused_.count() == 0 ? kExitOk : kExitRefused;
  }

  // Cancels the requests in flight after an error: the destructors of their futures would wait.
  ~BatchRunner() {
    if (!batches_.empty()) client_.Cancel();
  }

 private:
  using Batch = TextBatch<Kind>;
  using Entry = typename Batch::Entry;

  int Work() {
    absl::Status read;
    bool more = true;
    while (more) {
      std::vector<Entry> entries;
      more = Fill(&entries, &read);
      if (!entries.empty()) batches_.push_back(Batch::Make(std::move(entries), prototype_));
      Send();
      const size_t keep = more && source_.Ready() ? window_.max_in_flight() - 1 : 0;
      while (batches_.size() > keep) {
        if (const int exit = AnswerFirst(); exit != kExitOk) return exit;
      }
    }
    if (environment_.stop.stop_requested()) return FailToAnswer(absl::CancelledError("cancelled"));
    if (read.ok()) return kExitOk;
    progress_.Clear();
    const std::string note = ProgressNote("continues from there");
    return FailLocally(absl::Status(read.code(), absl::StrCat(read.message(), note)), environment_);
  }

  // Ends a run with an error that does not belong to a text.
  int FailToAnswer(const absl::Status& status) {
    progress_.Clear();
    return Fail(status, ProgressNote("continues from there"), environment_);
  }

  void PrintRefusedCount(int64_t refused, const std::string& of) {
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
    if (refused_.count() > 0) absl::StrAppend(&note, "\n  and ", refused_.count(), " refused");
    if (resume_point_.texts > 0) {
      absl::StrAppend(&note, "\n  after the ", resume_point_.texts, " of an earlier run");
    }
    if (keeps_answers()) absl::StrAppend(&note, "\n  the same command with --resume ", resumed);
    return note;
  }

  // True if there are answers after which --resume can continue.
  bool keeps_answers() const {
    return may_resume_ && answered_ + refused_.count() + resume_point_.texts > 0;
  }

  // Ends a run at a refused text.
  int FailAt(const Entry& entry) {
    progress_.Clear();
    std::string note = ProgressNote("--on-error skip continues after it");
    if (lines_ && !keeps_answers()) {
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
      if (source_.is_foreign()) entries->clear();
      if (!read.ok() || !read->has_value()) return false;
      Text& text = **read;
      if (text.problem.ok() && !IsBlank(text)) text.problem = Kind::Check(text);
      const bool last = !text.problem.ok() && !skip_refused_;
      bytes += text.content.size() + text.record.size();
      entries->push_back({std::move(text)});
      if (last) return false;
    } while (entries->size() < window_.max_texts() && bytes < kBytesPerRequest && source_.Ready());
    return true;
  }

  // Sends the first batches, as many as the window allows. One without a text needs no request.
  void Send() {
    for (size_t i = 0; i < std::min(batches_.size(), window_.max_in_flight()); ++i) {
      if (batches_[i].sent.empty() || batches_[i].response.valid()) continue;
      if (batches_[i].sent.size() > window_.max_texts()) Split(i, window_.max_texts());
      Batch& batch = batches_[i];
      batch.response = std::async(std::launch::async, [this, request = batch.request] {
        return Kind::Call(client_, *request, call_);
      });
    }
  }

  int AnswerFirst() {
    Send();
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    if (batch.sent.empty()) return Write(batch, Response());
    const absl::StatusOr<Response> response = batch.response.get();
    if (response.ok()) {
      window_.Succeeded();
      last_answer_ = absl::Now();
      return Write(batch, *response);
    }
    const ErrorAttribution attribution =
        AttributeToTexts(response.status(), Kind::kField, batch.sent.size());
    switch (attribution.fault) {
      case Fault::kNoText:
        return FailToAnswer(response.status());
      case Fault::kOneText:
        SendWithout(std::move(batch), attribution.text, response.status());
        return kExitOk;
      case Fault::kTooMuchTogether:
        batches_.push_front(std::move(batch));
        Split(0, (batches_.front().sent.size() + 1) / 2);
        return kExitOk;
      case Fault::kServerBusy:
      case Fault::kTooSlow:
        return SendLater(std::move(batch), attribution.fault, response.status());
    }
    return kExitLocal;
  }

  // Sends a batch again that the server was too busy or too slow for: after the others of this run
  // have ended, which may be the reason; a batch that was alone in smaller parts, and later.
  int SendLater(Batch batch, Fault fault, const absl::Status& status) {
    bool alone = true;
    for (const Batch& other : batches_) {
      if (!other.response.valid() ||
          other.response.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
        continue;
      alone = false;
      other.response.wait();
    }
    const size_t texts = batch.sent.size();
    batch.response = {};
    batches_.push_front(std::move(batch));
    // It was sent before the window became smaller, and goes again in its parts.
    if (texts > window_.max_texts()) return kExitOk;
    if (fault == Fault::kTooSlow && alone) {
      if (texts == 1) return FailToAnswer(status);
      window_.RecordTimeout(texts);
      return kExitOk;
    }
    window_.Refused(texts, alone);
    if (!alone) return kExitOk;
    const absl::Duration pause = DetailsOf(status).retry_delay.value_or(window_.pause());
    if (absl::Now() + pause - std::max(last_answer_, begin_) > busy_timeout_)
      return FailToAnswer(status);
    return Pause(pause) ? kExitOk : FailToAnswer(absl::CancelledError("cancelled"));
  }

  // Returns false if a stop was requested.
  bool Pause(absl::Duration duration) {
    std::mutex mu;
    std::unique_lock lock(mu);
    std::condition_variable_any never;
    never.wait_for(lock, environment_.stop, absl::ToChronoMilliseconds(duration),
                   [] { return false; });
    return !environment_.stop.stop_requested();
  }

  void SendWithout(Batch batch, size_t refused, const absl::Status& refusal) {
    const size_t place = batch.sent[refused];
    Entry& entry = batch.entries[place];
    entry.refusal = refusal;
    entry.field = absl::StrCat(Kind::kField, "[", refused, "]");
    // If the run ends at this text, the texts after it are not needed.
    if (!skip_refused_) batch.entries.resize(place + 1);
    batches_.push_front(Batch::Make(std::move(batch.entries), prototype_));
  }

  // Replaces a batch that is not in flight by batches of at most so many texts that are sent.
  void Split(size_t index, size_t max_texts) {
    std::vector<Batch> parts = std::move(batches_[index]).Split(max_texts, prototype_);
    const auto place = batches_.erase(batches_.begin() + static_cast<int64_t>(index));
    batches_.insert(place, std::make_move_iterator(parts.begin()),
                    std::make_move_iterator(parts.end()));
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
      texts_ += last - batch.entries.data() + 1;
      for (const Entry* entry = batch.entries.data(); entry <= last; ++entry)
        advance_.lines += entry->text.lines;
      advance_.bytes = last->text.end;
      if (record_ != nullptr)
        record_->Write({resume_point_.texts + texts_, last->text.digest,
                        resume_point_.known.refused + refused_.count(),
                        static_cast<int64_t>(environment_.out.tellp())});
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
      refused_.Write(entry.refusal.ok() ? why : text.name + ": " + why);
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
    if (!note.empty()) notes_.Write(text.name + ": " + note);
    ++answered_;
    return 1;
  }

  Client& client_;
  const Form form_;
  const bool skip_refused_;
  const bool lines_;
  const bool may_resume_;
  const absl::Duration busy_timeout_;
  const CallOptions call_;
  const Request prototype_;
  const Environment& environment_;
  Progress& progress_;
  ResumePoint resume_point_;
  ResumeRecord* const record_;
  TextSource source_;
  RequestWindow window_;
  absl::Time begin_;
  absl::Time last_answer_ = absl::InfinitePast();
  Advance advance_;
  std::deque<Batch> batches_;  // to be answered, the first of them in flight
  int64_t texts_ = 0;          // answered, refused or blank
  int64_t answered_ = 0;
  Notes refused_;
  Notes notes_;
};

}  // namespace linnet::client
