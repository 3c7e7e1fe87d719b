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
  ++line.waiting;
  sequences_.emplace(Key{begin, next_number_++}, std::move(sequence));
}

std::unique_ptr<Sequence> FairQueue::Take(Iterator which) {
  std::unique_ptr<Sequence> sequence = std::move(which->second);
  sequences_.erase(which);
  --lines_[FlowOf(sequence->caller)].waiting;
  if (sequences_.empty()) {  // nobody to be fair to
    lines_.clear();
    present_ = 0;
  }
  return sequence;
}

std::unique_ptr<Sequence> FairQueue::Serve(Iterator which) {
  // Some may be served out of turn, from behind others that cannot be: time does not run backwards.
  present_ = std::max(present_, which->first.first);
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
      --lines_[FlowOf(sequence->caller)].waiting;
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
  return std::exchange(sequences_, {});
}

}  // namespace linnet::server
