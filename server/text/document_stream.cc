#include "server/text/document_stream.h"

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
  return !reader_.closed() && reader_.empty() && !window_.waits_for_room() &&
         writer_.unwritten() < calls_.limits().max_inflight_lines;
}

template <typename Types>
absl::Status DocumentStream<Types>::Accept(Lines& message, std::shared_ptr<Permit> permit) {
  if (reader_.begun() && message.has_settings())
    return BadField("settings", Reason::kSetTwice, "may only be set in the first message");
  if (reader_.begun() && message.keep_order())
    return BadField("keep_order", Reason::kBadSetting, "may only be set in the first message");
  if (!reader_.begun()) {
    if (!message.has_settings())
      return BadField("settings", Reason::kMissing, "is required in the first message");
    if (message.settings().contents_size() > 0) {
      return BadField("settings.contents", Reason::kBadSetting,
                      "must be empty: the texts of a document are its lines");
    }
    if (auto status = calls_.CheckSettings(message.settings()); !status.ok())
      return Renamed("", "settings.", status);
    RETURN_IF_ERROR(CheckCallerPriority(message.settings().priority(), caller_));
    reader_.Begin(std::move(*message.mutable_settings()), permit);
    if (message.keep_order()) writer_.KeepOrder();
  }
  if (message.lines_size() > calls_.limits().max_contents) {
    return BadField("lines", Reason::kTooManyTexts,
                    absl::StrCat("holds ", message.lines_size(), " lines, at most ",
                                 calls_.limits().max_contents,
                                 " go into one message: send the rest in another"));
  }
  reader_.Add(*message.mutable_lines(), std::move(permit));
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
    if (reader_.closed()) return;
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
    if (reader_.closed()) return;
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
  reader_.Drop();
  if (status_.ok()) status_ = std::move(status);
}

template <typename Types>
void DocumentStream<Types>::Close() {
  {
    MutexLock lock(mu_);
    if (!reader_.begun() && !reader_.closed()) {
      EndWith(BadField("settings", Reason::kMissing, "is required in the first message"));
    }
    reader_.Close();
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
    if (reader_.closed() && reader_.empty()) return;  // the lines in flight are the last ones
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
  window_.Cancel();
  writer_.Drop(window_.running());
}

template <typename Types>
auto DocumentStream<Types>::Next() -> std::optional<Line> {
  if (!window_.may_start()) return std::nullopt;
  if (window_.has_retries()) return window_.Retry();
  while (!reader_.empty() && writer_.unwritten() < calls_.limits().max_inflight_lines &&
         writer_.blank_bytes() < kSmallMessage) {
    auto [number, line, permit] = reader_.Take();
    writer_.Expect();
    if (!model::IsBlank(line.text())) {
      return window_.Start({.number = number,
                            .sequence_id = line.sequence_id(),
                            .text = std::move(*line.mutable_text()),
                            .message_permit = std::move(permit)});
    }
    const auto bytes = permit == nullptr ? std::ssize(line.text()) : 0;
    Result result;
    result.set_sequence_id(line.sequence_id());
    AddText(std::move(*line.mutable_text()), *result.mutable_response());
    writer_.Store(number, std::move(result), {std::move(permit), bytes});
  }
  return std::nullopt;
}

template <typename Types>
absl::Status DocumentStream<Types>::Admit(Line line) {
  if (line->permit == nullptr) {
    auto bytes = static_cast<int64_t>(line->text.size());
    {
      MutexLock lock(mu_);
      bytes += static_cast<int64_t>(reader_.settings().SpaceUsedLong());
    }
    ASSIGN_OR_RETURN(std::shared_ptr<Permit> permit, calls_.Admit(caller_, bytes));
    MutexLock lock(mu_);
    typename Types::Request request = reader_.settings();
    std::string& text = *request.add_contents();
    // From here nothing throws: a line with a permit has its request.
    text = std::move(line->text);
    line->request.Swap(&request);
    line->permit = std::move(permit);
    line->message_permit = nullptr;
  } else {
    // A call that fails cancels the rest of itself: the next attempt must not begin cancelled.
    MutexLock lock(mu_);
    line->cancelled = std::make_shared<Cancellation>();
    if (window_.cancelled()) line->cancelled->Cancel();
  }
  // A line that was refused after this check comes again, and has held more.
  line->permit->SetBytes(Admission::kBytesPerCall +
                         static_cast<int64_t>(line->request.SpaceUsedLong()));
  return absl::OkStatus();
}

template <typename Types>
void DocumentStream<Types>::Advance() {
  {
    MutexLock lock(mu_);
    if (std::exchange(advancing_, true)) return;  // that thread checks again before it returns
  }
  while (true) {
    std::optional<Line> next;
    {
      MutexLock lock(mu_);
      try {
        next = Next();
      } catch (...) {
        Drop(ErrorOfException());
      }
      if (!next.has_value()) {
        advancing_ = false;
        break;
      }
    }
    const Line line = *next;
    std::optional<CallContext> context;
    TextCalls::Done done;
    absl::Status status;
    try {
      status = Admit(line);
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
void DocumentStream<Types>::LineDone(Line line, absl::Status status) {
  {
    MutexLock lock(mu_);
    if (window_.Ended(line, status)) Answer(line, status);
  }
  Advance();
}

template <typename Types>
void DocumentStream<Types>::Answer(Line line, const absl::Status& status) {
  // The client sends such a line to another server when the document ends. A result with this error
  // would keep it from doing so.
  if (absl::IsUnavailable(status)) {
    EndWith(status);
    writer_.LeaveUnanswered(line->number);
    window_.Remove(line);
    return;
  }
  try {
    Result result;
    result.set_sequence_id(line->sequence_id);
    if (status.ok()) {
      *result.mutable_response() = std::move(line->response);
    } else {
      *result.mutable_error() = ToProto(LineError(status));
    }
    writer_.Store(line->number, std::move(result), {std::move(line->permit)});
    window_.Remove(line);
  } catch (...) {  // without memory for the result of a line, the document fails
    window_.Remove(line);
    Drop(ErrorOfException());
  }
}

template <typename Types>
std::optional<typename Types::Result> DocumentStream<Types>::TakeResult() {
  MutexLock lock(mu_);
  return writer_.Take();
}

template <typename Types>
void DocumentStream<Types>::Written() {
  {
    MutexLock lock(mu_);
    writer_.Written();
  }
  Advance();
}

template <typename Types>
std::optional<absl::Status> DocumentStream<Types>::finished() {
  MutexLock lock(mu_);
  if (!reader_.closed() || !reader_.empty() || writer_.unwritten() > 0) return std::nullopt;
  permit_ = nullptr;
  reader_.ReleaseSettings();
  return status_;
}

template <typename Types>
int64_t DocumentStream<Types>::lines() const {
  MutexLock lock(mu_);
  return writer_.answered();
}

template class DocumentStream<TranslateDocumentTypes>;
template class DocumentStream<SummarizeDocumentTypes>;

}  // namespace linnet::server
