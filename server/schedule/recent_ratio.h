#pragma once

namespace linnet::server {

// A ratio of two exponentially decaying sums. When all weights have decayed, the value stays until
// the next term replaces it. Not thread-safe.
class RecentRatio {
 public:
  // Multiplies all earlier weights by `keep`, then adds numerator / denominator with the weight
  // `denominator`.
  void Add(double numerator, double denominator, double keep) {
    weight_ = weight_ * keep + denominator;
    if (denominator <= 0) return;
    value_ += (numerator / denominator - value_) * denominator / weight_;
    known_ = true;
  }
  bool known() const { return known_; }
  double value() const { return value_; }  // 0 before the first term

 private:
  double value_ = 0, weight_ = 0;
  bool known_ = false;
};

}  // namespace linnet::server
