#include "server/schedule/fair_queue.h"

#include <algorithm>
#include <utility>

namespace linnet::server {

void FairQueue::Push(std::unique_ptr<Sequence> sequence) {
  // Lines that nobody waits in are kept while they owe something, and no longer.
  if (lines_.size() > 2 * sequences_.size() + 16) {
    std::erase_if(lines_, [&](const auto& line) {
      return line.second.waiting == 0 && line.second.end <= present_;
    });
  }
  Line& line = lines_[FlowOf(sequence->caller)];
  const double begin = std::max(present_, line.end);
  line.end = begin + static_cast<double>(sequence->work()) / sequence->caller.weight();
  if (line.waiting++ == 0) waiting_weight_ += sequence->caller.weight();
  sequences_.emplace(Key{begin, next_number_++}, std::move(sequence));
}

void FairQueue::OneLess(const Sequence& sequence) {
  if (--lines_[FlowOf(sequence.caller)].waiting == 0) waiting_weight_ -= sequence.caller.weight();
}

std::unique_ptr<Sequence> FairQueue::Take(Iterator which) {
  std::unique_ptr<Sequence> sequence = std::move(which->second);
  sequences_.erase(which);
  OneLess(*sequence);
  if (sequences_.empty()) DropAll();  // nobody to be fair to
  return sequence;
}

std::unique_ptr<Sequence> FairQueue::Serve(Iterator which) {
  // New flows begin at the present. If that stood still while they are served, a flow that was
  // served before would wait as long as new ones come: it moves on by the work served, shared among
  // all that waited, but not past the next beginning.
  if (const auto later = sequences_.upper_bound({present_, ~uint64_t{0}});
      later != sequences_.end())
    present_ = std::min(later->first.first, present_ + served_);
  // Some may be served out of turn, from behind others that cannot be: time does not run backwards.
  present_ = std::max(present_, which->first.first);
  served_ = static_cast<double>(which->second->work()) / waiting_weight_;
  return Take(which);
}

std::vector<std::unique_ptr<Sequence>> FairQueue::DropIf(
    absl::FunctionRef<bool(const Sequence&)> unwanted) {
  std::vector<std::unique_ptr<Sequence>> dropped;
  if (std::none_of(sequences_.begin(), sequences_.end(),
                   [&](const auto& entry) { return unwanted(*entry.second); }))
    return dropped;
  std::map<Flow, double> moved_up;  // virtual time that the flow has got back
  Sequences kept;
  for (auto& [key, sequence] : std::exchange(sequences_, {})) {
    double& back = moved_up[FlowOf(sequence->caller)];
    if (unwanted(*sequence)) {
      back += static_cast<double>(sequence->work()) / sequence->caller.weight();
      OneLess(*sequence);
      dropped.push_back(std::move(sequence));
      continue;
    }
    // Not before the present, unless it has stood there already.
    const double begin = std::max(key.first - back, std::min(key.first, present_));
    kept.emplace(Key{begin, key.second}, std::move(sequence));
  }
  sequences_ = std::move(kept);
  for (const auto& [flow, back] : moved_up)
    lines_[flow].end = std::max(present_, lines_[flow].end - back);
  if (sequences_.empty()) DropAll();
  return dropped;
}

FairQueue::Sequences FairQueue::DropAll() {
  lines_.clear();
  present_ = 0;
  waiting_weight_ = served_ = 0;
  return std::exchange(sequences_, {});
}

}  // namespace linnet::server
