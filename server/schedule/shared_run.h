#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/cache/answer_cache.h"
#include "server/schedule/sequence.h"

namespace linnet::server {

// One source in the engine and the sequences that wait for its result: the one that was added, and
// the identical ones that have joined it. Each has a deadline, a cancellation and a sink of its
// own, and the run goes on while one of them is left. The first holds the rows; when it leaves, the
// next one does.
//
// Deterministic. Not thread-safe: the batcher owns it.
class SharedRun {
 public:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  explicit SharedRun(std::unique_ptr<Sequence> first) { sequences_.push_back(std::move(first)); }

  bool empty() const { return sequences_.empty(); }
  const Sequence& first() const { return *sequences_.front(); }
  const Sequences& sequences() const { return sequences_; }
  int64_t first_step() const { return first_step_; }

  // The encoder call is over; the sequences run from step number `step` on.
  void SetEncoded(absl::Time added, absl::Time encoded, int64_t step);
  // Adds an identical sequence. Its sink gets all progress so far.
  void Join(std::unique_ptr<Sequence> sequence, absl::Time now);
  // Removes and returns the sequences for which `leaves` is true.
  Sequences Take(absl::FunctionRef<bool(const Sequence&)> leaves);
  Sequences TakeAll() { return std::exchange(sequences_, {}); }
  // The engine has reported a stable prefix.
  void Progress(std::vector<model::TokenId> stable);
  // The answer to keep, from the event of the finished sequence.
  CachedAnswer AnswerOf(const model::SequenceEvent& event) const;

 private:
  Sequences sequences_;
  absl::Time encoded_ = absl::InfiniteFuture();
  int64_t first_step_ = 0;
  std::vector<model::TokenId> stable_ = {};  // the last prefix; kept if the run has a key
  std::vector<int> stable_ends_ = {};        // lengths of all prefixes so far
};

// Ends the sequence with an answer of the cache.
void AnswerFromCache(std::unique_ptr<Sequence> sequence, const CachedAnswer& answer,
                     absl::Time now);

}  // namespace linnet::server
