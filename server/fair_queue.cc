#include "server/fair_queue.h"

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

std::unique_ptr<Sequence> FairQueue::Serve(Iterator which) {
  // Some may be served out of turn, from behind others that cannot be: time does not run backwards.
  present_ = std::max(present_, which->first.first);
  return Drop(which);
}

std::unique_ptr<Sequence> FairQueue::Drop(Iterator which) {
  std::unique_ptr<Sequence> sequence = std::move(which->second);
  sequences_.erase(which);
  --lines_[FlowOf(sequence->caller)].waiting;
  if (sequences_.empty()) {  // nobody to be fair to
    lines_.clear();
    present_ = 0;
  }
  return sequence;
}

FairQueue::Sequences FairQueue::DropAll() {
  lines_.clear();
  present_ = 0;
  return std::exchange(sequences_, {});
}

}  // namespace linnet::server
