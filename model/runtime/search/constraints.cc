#include "model/runtime/search/constraints.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace linnet::model {
namespace {

bool StartsWith(std::span<const TokenId> phrase, std::span<const TokenId> tokens) {
  return tokens.size() <= phrase.size() && std::equal(tokens.begin(), tokens.end(), phrase.begin());
}

}  // namespace

Constraints::Constraints(std::vector<std::vector<TokenId>> phrases,
                         std::shared_ptr<const std::vector<TokenId>> continuations)
    : phrases_(std::move(phrases)), continuations_(std::move(continuations)) {}

std::span<const TokenId> Constraints::Forbidden(const Progress& progress) const {
  if (!progress.just_met || continuations_ == nullptr) return {};
  return *continuations_;
}

int Constraints::Unmet(const Progress& progress) const {
  return static_cast<int>(phrases_.size()) - std::popcount(progress.met);
}

std::vector<int> Constraints::UnmetBy(std::span<const TokenId> target) const {
  Progress progress;
  for (size_t length = 1; length <= target.size(); ++length)
    progress = After(progress, target.first(length));
  std::vector<int> unmet;
  for (size_t i = 0; i < phrases_.size(); ++i) {
    if (!met(progress, i)) unmet.push_back(static_cast<int>(i));
  }
  return unmet;
}

int Constraints::Bank(const Progress& progress) const {
  int tokens = progress.begun;
  for (size_t i = 0; i < phrases_.size(); ++i) {
    if (met(progress, i)) tokens += static_cast<int>(phrases_[i].size());
  }
  return tokens;
}

Constraints::Progress Constraints::After(const Progress& progress,
                                         std::span<const TokenId> tokens) const {
  // The longest suffix of the tokens that is the start of an unmet phrase. It is at most one token
  // longer than before, and does not overlap the tokens of a met phrase.
  for (int length = progress.begun + 1; length > 0; --length) {
    const auto end = tokens.last(length);
    bool begins = false;
    for (size_t i = 0; i < phrases_.size(); ++i) {
      if (met(progress, i) || !StartsWith(phrases_[i], end)) continue;
      if (phrases_[i].size() == end.size())
        return {.met = progress.met | uint32_t{1} << i, .begun = 0, .just_met = true};
      begins = true;
    }
    if (begins) return {.met = progress.met, .begun = length};
  }
  return {.met = progress.met, .begun = 0};
}

std::vector<TokenId> Constraints::Next(const Progress& progress,
                                       std::span<const TokenId> tokens) const {
  std::vector<TokenId> next;
  for (size_t i = 0; i < phrases_.size(); ++i) {
    if (met(progress, i)) continue;
    for (int length = 0; length <= progress.begun; ++length) {
      const auto end = tokens.last(length);
      if (std::cmp_less(length, phrases_[i].size()) && StartsWith(phrases_[i], end))
        next.push_back(phrases_[i][length]);
    }
  }
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
  return next;
}

}  // namespace linnet::model
