#include "server/text/document_stream.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/runtime/text/segmenter.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/identity/authentication.h"
#include "server/request/request_fields.h"

namespace linnet::server {
namespace {

// Memory for small messages that each document reserves. The same amount again is reserved for
// blank lines, which are answered at once and wait to be written.
constexpr int64_t kSmallMessage = 64 << 10;

void AddText(std::string text, linnet::v1::TranslateResponse& response) {
  auto& translation = *response.add_translations();
  translation.set_text(std::move(text));
  translation.set_finish_reason(linnet::v1::FINISH_REASON_STOP);
}
void AddText(std::string text, linnet::v1::SummarizeResponse& response) {
  auto& summary = *response.add_summaries();
  summary.set_text(std::move(text));
  summary.set_finish_reason(linnet::v1::FINISH_REASON_STOP);
}

// Renames the fields in the error of a call with one text to those of a document line.
absl::Status LineError(const absl::Status& status) {
  for (absl::string_view contents : {"contents[0]", "contents"}) {
    absl::Status renamed = Renamed(contents, "text", status);
    if (renamed != status) return renamed;
  }
  return Renamed("", "settings.", status);
}

// Checks the priority once for the document; otherwise each line would be refused.
absl::Status CheckCallerPriority(linnet::v1::Priority wanted, Caller caller) {
  std::optional<Priority> priority;
  RETURN_IF_ERROR(CheckPriority(wanted, priority));
  return ApplyPriority("settings.priority", priority, caller);
}

Caller WithCall(Caller caller, uint64_t call) {
  caller.call = call;
  return caller;
}

}  // namespace

template <typename Types>
DocumentStream<Types>::DocumentStream(TextCalls& calls, absl::Time deadline,
                                      std::function<void()> on_change, Caller caller,
                                      absl::Status refused)
    : calls_(calls),
      deadline_(deadline),
      on_change_(std::move(on_change)),
      caller_(WithCall(std::move(caller), calls.NewCall())) {
  std::shared_ptr<Permit> permit;
  if (refused.ok()) {
    absl::StatusOr<std::shared_ptr<Permit>> admitted = calls_.Admit(caller_, 2 * kSmallMessage);
    refused = admitted.status();
    if (admitted.ok()) permit = *std::move(admitted);
  }
  MutexLock lock(mu_);
  permit_ = std::move(permit);
  if (!refused.ok()) EndWith(std::move(refused));
}

template <typename Types>
bool DocumentStream<Types>::wants_more() const {
  MutexLock lock(mu_);
  return !closed_ && waiting_.empty() && refused_.empty() && retries_.empty() &&
         unwritten_ < calls_.limits().max_inflight_lines;
}

template <typename Types>
absl::Status DocumentStream<Types>::Accept(Lines& message, std::shared_ptr<Permit> permit) {
  if (started_ && message.has_settings())
    return BadField("settings", Reason::kSetTwice, "may only be set in the first message");
  if (started_ && message.keep_order())
    return BadField("keep_order", Reason::kBadSetting, "may only be set in the first message");
  if (!started_) {
    if (!message.has_settings())
      return BadField("settings", Reason::kMissing, "is required in the first message");
    if (message.settings().contents_size() > 0) {
      return BadField("settings.contents", Reason::kBadSetting,
                      "must be empty: the texts of a document are its lines");
    }
    if (auto status = calls_.CheckSettings(message.settings()); !status.ok())
      return Renamed("", "settings.", status);
    RETURN_IF_ERROR(CheckCallerPriority(message.settings().priority(), caller_));
    settings_ = std::move(*message.mutable_settings());
    settings_bytes_ = static_cast<int64_t>(settings_.SpaceUsedLong());
    settings_permit_ = permit;
    keep_order_ = message.keep_order();
    started_ = true;
  }
  if (message.lines_size() > calls_.limits().max_contents) {
    return BadField("lines", Reason::kTooManyTexts,
                    absl::StrCat("holds ", message.lines_size(), " lines, at most ",
                                 calls_.limits().max_contents,
                                 " go into one message: send the rest in another"));
  }
  for (linnet::v1::DocumentLine& line : *message.mutable_lines())
    waiting_.push_back(std::move(line));
  message_permit_ = std::move(permit);
  return absl::OkStatus();
}

template <typename Types>
absl::Status DocumentStream<Types>::HoldMessage(int64_t held, int64_t bytes,
                                                std::shared_ptr<Permit>& permit) {
  if (held + bytes <= kSmallMessage) return absl::OkStatus();
  if (permit != nullptr) return permit->Hold(bytes);
  ASSIGN_OR_RETURN(permit, calls_.Admit(caller_, held + bytes));
  return absl::OkStatus();
}

template <typename Types>
void DocumentStream<Types>::Take(Lines message) {
  Take([&](Lines& taken, Hold hold) {
    const auto bytes = static_cast<int64_t>(message.SpaceUsedLong());
    taken = std::move(message);
    return hold(bytes);
  });
}

template <typename Types>
void DocumentStream<Types>::Take(absl::FunctionRef<absl::Status(Lines&, Hold)> read) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
  }
  Lines message;
  std::shared_ptr<Permit> permit;
  int64_t held = 0;
  absl::Status status = read(message, [&](int64_t bytes) {
    absl::Status status = HoldMessage(held, bytes, permit);
    held += bytes;
    return status;
  });
  {
    MutexLock lock(mu_);
    if (closed_) return;
    if (status.ok()) {
      status = Accept(message, std::move(permit));
      if (!status.ok()) calls_.CountInvalid(status);
    }
    if (!status.ok()) EndWith(std::move(status));
  }
  Advance();
}

template <typename Types>
void DocumentStream<Types>::EndWith(absl::Status status) {
  closed_ = true;
  waiting_.clear();
  message_permit_ = nullptr;
  if (status_.ok()) status_ = std::move(status);
}

template <typename Types>
void DocumentStream<Types>::Close() {
  {
    MutexLock lock(mu_);
    if (!started_ && !closed_) {
      EndWith(BadField("settings", Reason::kMissing, "is required in the first message"));
    }
    closed_ = true;
  }
  on_change_();
}

template <typename Types>
void DocumentStream<Types>::Fail(absl::Status status) {
  {
    MutexLock lock(mu_);
    EndWith(std::move(status));
  }
  on_change_();
}

template <typename Types>
void DocumentStream<Types>::Drain() {
  {
    MutexLock lock(mu_);
    if (closed_ && waiting_.empty()) return;  // the lines in flight are the last ones
    EndWith(ShuttingDown());
  }
  on_change_();
}

template <typename Types>
void DocumentStream<Types>::Cancel() {
  {
    MutexLock lock(mu_);
    Drop(absl::CancelledError("cancelled by the caller"));
  }
  on_change_();
}

template <typename Types>
void DocumentStream<Types>::Drop(absl::Status status) {
  EndWith(std::move(status));
  cancelled_ = true;
  results_.clear();
  refused_.clear();
  retries_.clear();
  unwritten_ = static_cast<int>(in_flight_.size() + writing_.size());
  blank_bytes_ = 0;
  for (const Held& held : writing_) blank_bytes_ += held.blank_bytes;
  for (Line& line : in_flight_) line.cancelled->Cancel();
}

template <typename Types>
bool DocumentStream<Types>::Next(LineIt& line) {
  if (one_at_a_time_ && !in_flight_.empty()) return false;
  if (!refused_.empty()) return false;
  if (!retries_.empty()) {
    in_flight_.splice(in_flight_.end(), retries_, retries_.begin());
    line = std::prev(in_flight_.end());
    MarkOverlap(line);
    return true;
  }
  while (!waiting_.empty() && unwritten_ < calls_.limits().max_inflight_lines &&
         blank_bytes_ < kSmallMessage) {
    linnet::v1::DocumentLine next = std::move(waiting_.front());
    waiting_.pop_front();
    const std::shared_ptr<Permit> of_message = message_permit_;
    if (waiting_.empty()) message_permit_ = nullptr;
    ++unwritten_;
    const int64_t number = next_number_++;
    if (model::IsBlank(next.text())) {
      const auto bytes = of_message == nullptr ? std::ssize(next.text()) : 0;
      Result result;
      result.set_sequence_id(next.sequence_id());
      AddText(std::move(*next.mutable_text()), *result.mutable_response());
      blank_bytes_ += bytes;
      StoreResult(number, std::move(result), {of_message, bytes});
      continue;
    }
    line = in_flight_.emplace(in_flight_.end());
    line->number = number;
    line->message_permit = of_message;
    line->sequence_id = next.sequence_id();
    line->text = std::move(*next.mutable_text());
    MarkOverlap(line);
    return true;
  }
  return false;
}

template <typename Types>
absl::Status DocumentStream<Types>::Admit(Line& line) {
  if (line.permit == nullptr) {
    int64_t bytes = std::ssize(line.text);
    {
      MutexLock lock(mu_);
      bytes += settings_bytes_;
    }
    ASSIGN_OR_RETURN(std::shared_ptr<Permit> permit, calls_.Admit(caller_, bytes));
    MutexLock lock(mu_);
    typename Types::Request request = settings_;
    std::string& text = *request.add_contents();
    // From here nothing throws: a line with a permit has its request.
    text = std::move(line.text);
    line.request.Swap(&request);
    line.permit = std::move(permit);
    line.message_permit = nullptr;
  } else {
    // A call that fails cancels the rest of itself: the next attempt must not begin cancelled.
    MutexLock lock(mu_);
    line.cancelled = std::make_shared<Cancellation>();
    if (cancelled_) line.cancelled->Cancel();
  }
  // A line that was refused after this check comes again, and has held more.
  line.permit->SetBytes(Admission::kBytesPerCall +
                        static_cast<int64_t>(line.request.SpaceUsedLong()));
  return absl::OkStatus();
}

template <typename Types>
void DocumentStream<Types>::MarkOverlap(LineIt line) {
  line->overlapped = in_flight_.size() > 1;
  // With more than two in flight, the others were marked when the second one came.
  if (in_flight_.size() == 2) in_flight_.front().overlapped = in_flight_.back().overlapped = true;
}

template <typename Types>
void DocumentStream<Types>::Advance() {
  {
    MutexLock lock(mu_);
    if (std::exchange(advancing_, true)) return;  // that thread checks again before it returns
  }
  while (true) {
    LineIt line;
    {
      MutexLock lock(mu_);
      bool found = false;
      try {
        found = Next(line);
      } catch (...) {
        Drop(ErrorOfException());
      }
      if (!found) {
        advancing_ = false;
        break;
      }
    }
    std::optional<CallContext> context;
    TextCalls::Done done;
    absl::Status status;
    try {
      status = Admit(*line);
      context.emplace(CallContext{.arrived = absl::Now(),
                                  .deadline = deadline_,
                                  .cancelled = line->cancelled,
                                  .permit = line->permit,
                                  .caller = caller_});
      done = [self = this->shared_from_this(), line](absl::Status result) {
        self->LineDone(line, std::move(result));
      };
    } catch (...) {
      status = ErrorOfException();
    }
    if (!status.ok()) {
      LineDone(line, std::move(status));
      continue;
    }
    // The call may end within Start, on this thread.
    Types::Start(calls_, line->request, line->response, *context, std::move(done));
  }
  on_change_();
}

template <typename Types>
void DocumentStream<Types>::LineDone(LineIt line, absl::Status status) {
  {
    MutexLock lock(mu_);
    // Other lines of this document may hold the resources; then they will be released. A line that
    // was refused without other lines in flight fails.
    const bool wait = absl::IsResourceExhausted(status) && line->overlapped && !cancelled_;
    if (wait) {
      refused_.splice(refused_.end(), in_flight_, line);
      if (!in_flight_.empty()) return;  // the next line that ends retries it
    }
    one_at_a_time_ = wait;
    retries_.splice(retries_.end(), refused_);
    if (!wait) Answer(line, status);
  }
  Advance();
}

template <typename Types>
void DocumentStream<Types>::Answer(LineIt line, const absl::Status& status) {
  try {
    Result result;
    result.set_sequence_id(line->sequence_id);
    if (status.ok()) {
      *result.mutable_response() = std::move(line->response);
    } else {
      *result.mutable_error() = ToProto(LineError(status));
    }
    StoreResult(line->number, std::move(result), {std::move(line->permit)});
    if (absl::IsUnavailable(status)) EndWith(status);
    in_flight_.erase(line);
  } catch (...) {  // without memory for the result of a line, the document fails
    in_flight_.erase(line);
    Drop(ErrorOfException());
  }
}

template <typename Types>
void DocumentStream<Types>::StoreResult(int64_t number, Result result, Held held) {
  if (cancelled_) {
    --unwritten_;
    blank_bytes_ -= held.blank_bytes;
  } else {
    // Without keep_order the results are sorted by arrival, in the same map.
    results_.emplace(keep_order_ ? number : answered_ + 1,
                     StoredResult{std::move(result), std::move(held)});
  }
  ++answered_;
}

template <typename Types>
std::optional<typename Types::Result> DocumentStream<Types>::TakeResult() {
  MutexLock lock(mu_);
  if (results_.empty()) return std::nullopt;
  const auto first = results_.begin();
  if (keep_order_ && first->first != next_result_) return std::nullopt;
  writing_.emplace_back();
  ++next_result_;
  std::optional<Result> result = std::move(first->second.result);
  writing_.back() = std::move(first->second.held);
  results_.erase(first);
  return result;
}

template <typename Types>
void DocumentStream<Types>::Written() {
  {
    MutexLock lock(mu_);
    --unwritten_;
    if (!writing_.empty()) {
      blank_bytes_ -= writing_.front().blank_bytes;
      writing_.pop_front();
    }
  }
  Advance();
}

template <typename Types>
std::optional<absl::Status> DocumentStream<Types>::finished() {
  MutexLock lock(mu_);
  if (!closed_ || !waiting_.empty() || unwritten_ > 0) return std::nullopt;
  permit_ = settings_permit_ = nullptr;
  return status_;
}

template <typename Types>
int64_t DocumentStream<Types>::lines() const {
  MutexLock lock(mu_);
  return answered_;
}

template class DocumentStream<TranslateDocumentTypes>;
template class DocumentStream<SummarizeDocumentTypes>;

}  // namespace linnet::server
