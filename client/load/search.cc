#include "client/load/search.h"

#include <algorithm>
#include <cmath>

namespace linnet::client {

RateSearch::RateSearch(double min, double max, double precision)
    : min_(min), max_(max), precision_(precision) {}

std::optional<double> RateSearch::Next() const {
  if (ended_) return std::nullopt;
  if (!held_) return min_;
  if (!failed_) return std::min(2 * *held_, max_);  // a second probe of max_ confirms it
  const bool narrow = *failed_ <= *held_ * (1 + precision_) * (1 + 1e-9);
  return narrow ? *held_ : std::sqrt(*held_ * *failed_);
}

void RateSearch::Add(bool held) {
  const double rate = *Next();
  if (held) {
    ended_ = held_ == rate;
    if (ended_) found_ = rate;
    held_ = rate;
    return;
  }
  ended_ = rate == min_;
  failed_ = rate;
  if (held_ == rate) held_ = std::max(min_, rate / (1 + precision_));
}

}  // namespace linnet::client
