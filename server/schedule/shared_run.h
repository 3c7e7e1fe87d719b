#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/cache/answer_cache.h"
#include "server/schedule/cancellation.h"
#include "server/schedule/sequence.h"

namespace linnet::server {

// One source in the engine and the sequences that wait for its result: the one that was added, and
// the identical ones that have joined it. Each has a deadline, a cancellation and a sink of its
// own, and the run goes on while one of them is left. The first holds the rows; when it leaves, the
// next one does.
//
// A call may have tens of thousands of equal lines, which all share one run, and every client of
// the engine waits for its steps. Indexes by deadline and cancellation therefore let a step examine
// one sequence of each call and those that leave, not all that have joined. To bound the number
// that may join would be no remedy: the rest would be decoded again.
//
// Deterministic. Not thread-safe: the batcher owns it.
class SharedRun {
 public:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  explicit SharedRun(std::unique_ptr<Sequence> first) { Push(std::move(first)); }

  bool empty() const { return sequences_.empty(); }
  const Sequence& first() const { return *sequences_.begin()->second; }
  // In the order in which they joined.
  const std::map<uint64_t, std::unique_ptr<Sequence>>& sequences() const { return sequences_; }
  // The highest of its sequences.
  Priority priority() const;
  // Steps in which it was decoded, once `step` were made in all.
  int64_t Steps(int64_t step) const { return (paused_ ? *paused_ : step) - first_step_; }

  bool paused() const { return paused_.has_value(); }
  // Before step number `step`, which will decode it or not.
  void SetPaused(bool paused, int64_t step);

  // The encoder call is over; the sequences run from step number `step` on.
  void SetEncoded(absl::Time added, absl::Time encoded, int64_t step);
  // Adds an identical sequence. Its sink gets all progress so far.
  void Join(std::unique_ptr<Sequence> sequence, absl::Time now);
  // Removes and returns the sequences that are cancelled or whose deadline is not after `now`. Adds
  // the number of calls and sequences that it has inspected to `examined`.
  Sequences TakeEnded(absl::Time now, int& examined);
  Sequences TakeAll();
  // The engine has reported a stable prefix.
  void Progress(std::vector<model::TokenId> stable);
  // The answer to keep, from the event of the finished sequence.
  CachedAnswer MakeAnswer(const model::SequenceEvent& event) const;

 private:
  void Push(std::unique_ptr<Sequence> sequence);
  std::unique_ptr<Sequence> Take(uint64_t position);

  uint64_t next_ = 0;  // position, the order of joining, by which the others refer to sequences
  std::map<uint64_t, std::unique_ptr<Sequence>> sequences_;
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;  // of those that have a deadline
  std::map<const Cancellation*, std::set<uint64_t>> cancellations_;
  std::map<uint64_t, Sequence*> streams_;  // those that get stable prefixes
  absl::Time encoded_ = absl::InfiniteFuture();
  int64_t first_step_ = 0;                        // later, by the steps in which it was paused
  std::optional<int64_t> paused_ = std::nullopt;  // since this step
  std::array<int, 3> priorities_ = {};            // number of sequences of each
  std::vector<model::TokenId> stable_ = {};       // the last prefix; kept if the run has a key
  std::vector<int> stable_ends_ = {};             // lengths of all prefixes so far
};

// Ends the sequence with an answer of the cache.
void AnswerFromCache(std::unique_ptr<Sequence> sequence, const CachedAnswer& answer,
                     absl::Time now);

}  // namespace linnet::server
