#include "model/runtime/search/live_hypotheses.h"

#include <algorithm>

namespace linnet::model {
namespace {

constexpr int kNone = -1;

// Replaces what follows the first `begin` values of `to` by that of `from`, up to `end`.
template <typename T>
void CopyTail(const std::vector<T>& from, int begin, int end, std::vector<T>& to) {
  to.resize(begin);
  to.insert(to.end(), from.begin() + begin, from.begin() + end);
}

}  // namespace

int LiveHypotheses::common_prefix() const {
  return *std::min_element(common_.begin(), common_.begin() + size_);
}

std::span<const TokenId> LiveHypotheses::TokensWith(int i, TokenId token) {
  std::vector<TokenId>& tokens = paths_[slots_[i]].tokens;
  tokens.resize(length_);
  tokens.push_back(token);
  return tokens;
}

void LiveHypotheses::AssignSlots(std::span<const Candidate> next) {
  heirs_.assign(size_, kNone);  // the first continuation of each hypothesis
  next_slots_.assign(next.size(), kNone);
  for (int i = 0; i < std::ssize(next); ++i) {
    int& heir = heirs_[next[i].parent];
    if (heir != kNone) continue;
    heir = i;
    next_slots_[i] = slots_[next[i].parent];
  }
  int at = 0;
  const auto skip_taken = [&] {
    while (at < size_ && heirs_[at] != kNone) ++at;
  };
  for (int i = 0; i < std::ssize(next); ++i) {
    if (next_slots_[i] != kNone) continue;
    skip_taken();
    if (at == std::ssize(slots_)) {
      paths_.emplace_back();
      slots_.push_back(at);
    }
    const int parent = next[i].parent;
    const int same = at < size_ ? common_[parent * size_ + at] : 0;
    Path& to = paths_[slots_[at]];
    CopyTail(path(parent).tokens, same, length_, to.tokens);
    CopyTail(path(parent).scores, same, length_, to.scores);
    next_slots_[i] = slots_[at++];
  }
  for (skip_taken(); at < std::ssize(slots_); skip_taken()) next_slots_.push_back(slots_[at++]);
  slots_.swap(next_slots_);
}

void LiveHypotheses::UpdateCommon(std::span<const Candidate> next) {
  next_common_.resize(next.size() * next.size());
  auto common = next_common_.begin();
  for (const Candidate& a : next) {
    for (const Candidate& b : next) {
      const int before = common_[a.parent * size_ + b.parent];
      const bool same = a.token == b.token && a.log_probability == b.log_probability;
      *common++ = before == length_ && same ? before + 1 : before;
    }
  }
  common_.swap(next_common_);
}

void LiveHypotheses::Step(std::span<const Candidate> next) {
  AssignSlots(next);
  UpdateCommon(next);
  for (int i = 0; i < std::ssize(next); ++i) {
    Path& path = paths_[slots_[i]];
    path.tokens.resize(length_);
    path.tokens.push_back(next[i].token);
    path.scores.push_back(next[i].log_probability);
    path.sum = next[i].sum;
  }
  size_ = static_cast<int>(next.size());
  ++length_;
}

}  // namespace linnet::model
