#pragma once

namespace linnet::server {

// The ratio of two sums in which older terms weigh less. The value stays when all weights have
// decayed: then the next term replaces it. Plain.
class RecentRatio {
 public:
  // Adds numerator / denominator with the weight `denominator`; all earlier weights are multiplied
  // by `keep`.
  void Add(double numerator, double denominator, double keep) {
    weight_ = weight_ * keep + denominator;
    if (denominator <= 0) return;
    value_ += (numerator / denominator - value_) * denominator / weight_;
    known_ = true;
  }
  bool known() const { return known_; }
  double value() const { return value_; }  // 0 while nothing is known

 private:
  double value_ = 0, weight_ = 0;
  bool known_ = false;
};

}  // namespace linnet::server
