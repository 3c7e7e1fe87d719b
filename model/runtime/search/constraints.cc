#include "model/runtime/search/constraints.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace linnet::model {
namespace {

uint32_t WithContained(const Constraints::Progress& progress) {
  if (progress.contained == Constraints::Progress::kNone) return progress.met;
  return progress.met | uint32_t{1} << progress.contained;
}

}  // namespace

Constraints::Constraints(std::vector<std::vector<TokenId>> phrases,
                         std::shared_ptr<const std::vector<TokenId>> continuations)
    : phrases_(std::move(phrases)), continuations_(std::move(continuations)) {}

bool Constraints::Continues(TokenId token) const {
  return continuations_ != nullptr &&
         std::binary_search(continuations_->begin(), continuations_->end(), token);
}

std::vector<int> Constraints::Starting(uint32_t met, std::span<const TokenId> tokens) const {
  std::vector<int> starting;
  for (int i = 0; i < std::ssize(phrases_); ++i) {
    const std::vector<TokenId>& phrase = phrases_[i];
    if ((met >> i & 1) == 0 && tokens.size() <= phrase.size() &&
        std::equal(tokens.begin(), tokens.end(), phrase.begin()))
      starting.push_back(i);
  }
  return starting;
}

int Constraints::Contained(uint32_t met, std::span<const TokenId> tokens, int begun) const {
  for (int length = begun; length > 0; --length) {
    if (std::cmp_less(length, tokens.size()) && Continues(tokens[length])) continue;
    for (int i : Starting(met, tokens.first(length))) {
      if (std::cmp_equal(phrases_[i].size(), length)) return i;
    }
  }
  return Progress::kNone;
}

int Constraints::Unmet(const Progress& progress) const {
  return static_cast<int>(phrases_.size()) - std::popcount(WithContained(progress));
}

int Constraints::Bank(const Progress& progress) const {
  int tokens = progress.begun;
  for (size_t i = 0; i < phrases_.size(); ++i) {
    if ((progress.met >> i & 1) != 0) tokens += static_cast<int>(phrases_[i].size());
  }
  return tokens;
}

Constraints::Progress Constraints::After(const Progress& progress,
                                         std::span<const TokenId> tokens) const {
  const auto read = tokens.last(progress.begun + 1);
  if (!Starting(progress.met, read).empty()) {
    const int begun = progress.begun + 1;
    return {progress.met, begun, Contained(progress.met, read, begun)};
  }
  if (progress.begun == 0) return progress;
  const Progress broken_off{progress.met, 0, Contained(progress.met, read, progress.begun)};
  const size_t taken =
      broken_off.contained == Progress::kNone ? 1 : phrases_[broken_off.contained].size();
  Progress after{.met = WithContained(broken_off)};
  for (size_t behind = read.size() - taken; behind > 0; --behind)
    after = After(after, tokens.first(tokens.size() - behind + 1));
  return after;
}

std::vector<int> Constraints::UnmetBy(std::span<const TokenId> target) const {
  Progress progress;
  for (size_t length = 1; length <= target.size(); ++length)
    progress = After(progress, target.first(length));
  return Starting(WithContained(progress), {});
}

std::vector<TokenId> Constraints::Forbidden(const Progress& progress,
                                            std::span<const TokenId> tokens) const {
  const bool just_ended = progress.contained != Progress::kNone &&
                          std::cmp_equal(phrases_[progress.contained].size(), progress.begun);
  if (!just_ended || continuations_ == nullptr) return {};
  std::vector<TokenId> forbidden = *continuations_;
  for (int i : Starting(progress.met, tokens.last(progress.begun))) {
    if (std::cmp_less(progress.begun, phrases_[i].size()))
      std::erase(forbidden, phrases_[i][progress.begun]);
  }
  return forbidden;
}

std::vector<TokenId> Constraints::Next(const Progress& progress,
                                       std::span<const TokenId> tokens) const {
  std::vector<TokenId> possible;
  for (int length = 0; length <= progress.begun; ++length) {
    for (int i : Starting(progress.met, tokens.last(length))) {
      if (std::cmp_less(length, phrases_[i].size())) possible.push_back(phrases_[i][length]);
    }
  }
  std::sort(possible.begin(), possible.end());
  possible.erase(std::unique(possible.begin(), possible.end()), possible.end());
  // Where a phrase ended, those that would begin another inside it are none.
  const std::span<const TokenId> begun = tokens.last(progress.begun);
  std::vector<TokenId> longer(begun.begin(), begun.end());
  longer.push_back(0);
  std::erase_if(possible, [&](TokenId token) {
    longer.back() = token;
    return After(progress, longer).begun == 0;
  });
  return possible;
}

}  // namespace linnet::model
