#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"
#include "server/admission/admission.h"
#include "server/schedule/cancellation.h"

namespace linnet::server {

// The three parts of a DocumentStream, which owns them and whose lock guards them: a reader of
// lines, a window of lines in flight, and a writer of results. None of them is thread-safe.

// The settings of a document, and its lines from their message to the start of their calls.
template <typename Request>
class LineReader {
 public:
  struct Line {
    int64_t number;  // in the document
    linnet::v1::DocumentLine line;
    std::shared_ptr<Permit> permit;  // of its message
  };

  void Begin(Request settings, std::shared_ptr<Permit> permit) {
    settings_ = std::move(settings);
    settings_permit_ = std::move(permit);
    begun_ = true;
  }
  template <typename Lines>
  void Add(Lines& lines, std::shared_ptr<Permit> permit) {
    for (linnet::v1::DocumentLine& line : lines) waiting_.push_back(std::move(line));
    permit_ = std::move(permit);
  }
  Line Take() {
    Line line{next_number_++, std::move(waiting_.front()), permit_};
    waiting_.pop_front();
    if (waiting_.empty()) permit_ = nullptr;
    return line;
  }
  // No further message will come. Drop also forgets the lines that wait.
  void Close() { closed_ = true; }
  void Drop() {
    closed_ = true;
    waiting_.clear();
    permit_ = nullptr;
  }
  void ReleaseSettings() { settings_permit_ = nullptr; }

  bool begun() const { return begun_; }
  bool closed() const { return closed_; }
  bool empty() const { return waiting_.empty(); }
  const Request& settings() const { return settings_; }

 private:
  bool begun_ = false;  // the settings have arrived
  bool closed_ = false;
  Request settings_;
  std::shared_ptr<Permit> settings_permit_;
  std::deque<linnet::v1::DocumentLine> waiting_;
  std::shared_ptr<Permit> permit_;  // of the waiting lines
  int64_t next_number_ = 0;
};

// The lines whose calls run, or are to be tried again because the server was busy.
template <typename Types>
class LineWindow {
 public:
  struct Line {
    int64_t number = 0;
    int64_t sequence_id = 0;
    std::string text;                                  // until it is admitted
    std::shared_ptr<Permit> message_permit = nullptr;  // for as long
    std::shared_ptr<Permit> permit = nullptr;          // then its own
    typename Types::Request request = {};              // and the settings with this text
    typename Types::Response response = {};
    std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
    bool overlapped = false;  // another line was in flight at the same time
  };
  using Iterator = typename std::list<Line>::iterator;

  // False while a line waits for the end of another one.
  bool may_start() const { return refused_.empty() && (!alone_ || running_.empty()); }
  bool has_retries() const { return !retries_.empty(); }
  bool waits_for_room() const { return !refused_.empty() || !retries_.empty(); }
  int running() const { return static_cast<int>(running_.size()); }
  bool cancelled() const { return cancelled_; }

  Iterator Retry() {
    running_.splice(running_.end(), retries_, retries_.begin());
    return MarkOverlap();
  }
  Iterator Start(Line line) {
    running_.push_back(std::move(line));
    return MarkOverlap();
  }
  // The call of a line has ended. False if the line is to be tried again: the server was busy, and
  // other lines of this document may hold what it needs.
  bool Ended(Iterator line, const absl::Status& status) {
    const bool again = absl::IsResourceExhausted(status) && line->overlapped && !cancelled_;
    if (again) refused_.splice(refused_.end(), running_, line);
    if (again && !running_.empty()) return false;  // the next line that ends retries it
    alone_ = again;
    retries_.splice(retries_.end(), refused_);
    return !again;
  }
  void Remove(Iterator line) { running_.erase(line); }
  void Cancel() {
    cancelled_ = true;
    refused_.clear();
    retries_.clear();
    for (Line& line : running_) line.cancelled->Cancel();
  }

 private:
  // Marks the lines that are in flight at the same time as the last one.
  Iterator MarkOverlap() {
    running_.back().overlapped = running_.size() > 1;
    // With more than two in flight, the others were marked when the second one came.
    if (running_.size() == 2) running_.front().overlapped = true;
    return std::prev(running_.end());
  }

  std::list<Line> running_;
  std::list<Line> refused_;  // wait until another line has ended
  std::list<Line> retries_;  // were refused, and may be tried again
  bool alone_ = false;       // all were refused: run the next one alone
  bool cancelled_ = false;
};

// The results of lines until they are written, in the order that the client chose.
template <typename Result>
class ResultWriter {
 public:
  // Memory of a result.
  struct Held {
    std::shared_ptr<Permit> permit;
    int64_t blank_bytes = 0;  // of a blank line, which the document's reserve pays for
  };

  void KeepOrder() { keep_order_ = true; }
  // A line was taken: its result will come.
  void Expect() { ++unwritten_; }
  void Store(int64_t number, Result result, Held held) {
    if (dropped_ || (keep_order_ && number > first_unanswered_)) {
      --unwritten_;
    } else {
      blank_bytes_ += held.blank_bytes;
      // Without an order the results are sorted by arrival, in the same map.
      results_.emplace(keep_order_ ? number : answered_,
                       std::pair(std::move(result), std::move(held)));
    }
    ++answered_;
  }
  // A line will have no result, and neither will, in order, the lines after it.
  void LeaveUnanswered(int64_t number) {
    --unwritten_;
    if (!keep_order_) return;
    first_unanswered_ = std::min(first_unanswered_, number);
    const auto after = results_.upper_bound(number);
    for (auto each = after; each != results_.end(); ++each) {
      blank_bytes_ -= each->second.second.blank_bytes;
      --unwritten_;
    }
    results_.erase(after, results_.end());
  }
  // The next result to be written.
  std::optional<Result> Take() {
    if (results_.empty()) return std::nullopt;
    const auto first = results_.begin();
    if (keep_order_ && first->first != next_) return std::nullopt;
    writing_.emplace_back();
    ++next_;
    std::optional<Result> result = std::move(first->second.first);
    writing_.back() = std::move(first->second.second);
    results_.erase(first);
    return result;
  }
  void Written() {
    --unwritten_;
    if (writing_.empty()) return;
    blank_bytes_ -= writing_.front().blank_bytes;
    writing_.pop_front();
  }
  // The results so far and those of the lines in flight are not wanted any longer.
  void Drop(int in_flight) {
    dropped_ = true;
    results_.clear();
    unwritten_ = in_flight + static_cast<int>(writing_.size());
    blank_bytes_ = 0;
    for (const Held& held : writing_) blank_bytes_ += held.blank_bytes;
  }

  int unwritten() const { return unwritten_; }          // lines taken, result not yet written
  int64_t blank_bytes() const { return blank_bytes_; }  // of the results
  int64_t answered() const { return answered_; }

 private:
  bool keep_order_ = false;
  bool dropped_ = false;
  std::map<int64_t, std::pair<Result, Held>> results_;
  std::deque<Held> writing_;  // of results being written
  int unwritten_ = 0;
  int64_t blank_bytes_ = 0;
  int64_t next_ = 0;
  int64_t answered_ = 0;
  int64_t first_unanswered_ = std::numeric_limits<int64_t>::max();
};

}  // namespace linnet::server
