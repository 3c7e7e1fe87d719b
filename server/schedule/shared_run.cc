#include "server/schedule/shared_run.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

namespace linnet::server {
namespace {

// Reports each prefix of `tokens` that ends at one of `ends`.
void ReportStable(std::span<const model::TokenId> tokens, std::span<const int> ends,
                  const Sequence& sequence) {
  if (!sequence.report_stable || sequence.sink == nullptr) return;
  for (const int end : ends) sequence.sink->Progress({tokens.begin(), tokens.begin() + end});
}

}  // namespace

void SharedRun::SetEncoded(absl::Time added, absl::Time encoded, int64_t step) {
  encoded_ = encoded;
  first_step_ = step;
  for (const auto& sequence : sequences_) {
    sequence->times.added = added;
    sequence->times.encoded = encoded;
  }
}

void SharedRun::Join(std::unique_ptr<Sequence> sequence, absl::Time now) {
  sequence->origin = ResultOrigin::kCoalesced;
  if (encoded_ != absl::InfiniteFuture()) sequence->times.added = sequence->times.encoded = now;
  ReportStable(stable_, stable_ends_, *sequence);
  sequences_.push_back(std::move(sequence));
}

SharedRun::Sequences SharedRun::Take(absl::FunctionRef<bool(const Sequence&)> leaves) {
  const auto is_left = [&](const auto& each) { return leaves(*each); };
  if (std::none_of(sequences_.begin(), sequences_.end(), is_left)) return {};
  const auto left =
      std::stable_partition(sequences_.begin(), sequences_.end(), std::not_fn(is_left));
  Sequences taken(std::make_move_iterator(left), std::make_move_iterator(sequences_.end()));
  sequences_.erase(left, sequences_.end());
  return taken;
}

void SharedRun::Progress(std::vector<model::TokenId> stable) {
  const bool keeps = !first().key.empty();
  if (keeps) stable_ends_.push_back(static_cast<int>(stable.size()));
  for (const auto& sequence : sequences_) {
    if (sequence->report_stable && sequence->sink != nullptr) sequence->sink->Progress(stable);
  }
  if (keeps) stable_ = std::move(stable);
}

CachedAnswer SharedRun::AnswerOf(const model::SequenceEvent& event) const {
  return {event.hypotheses, event.attention, {stable_ends_.begin(), stable_ends_.end()}};
}

void AnswerFromCache(std::unique_ptr<Sequence> sequence, const CachedAnswer& answer,
                     absl::Time now) {
  if (sequence->sink == nullptr) return;
  SequenceTimes& times = sequence->times;
  times.added = times.encoded = times.finished = now;
  if (!answer.hypotheses.empty())
    ReportStable(answer.hypotheses.front().tokens, answer.stable_ends, *sequence);
  sequence->End(SequenceResult{answer.hypotheses, times, answer.attention, ResultOrigin::kCache});
}

}  // namespace linnet::server
