#include "client/run/histogram.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace linnet::client {
namespace {

int BitWidth(int64_t value) {
  int bits = 0;
  for (; value > 0; value >>= 1) ++bits;
  return bits;
}

}  // namespace

LatencyHistogram::LatencyHistogram(int bits) : bits_(bits), counts_(BucketIndex(kMax) + 1) {}

int64_t LatencyHistogram::ToMicros(absl::Duration value) {
  return std::clamp<int64_t>(absl::ToInt64Microseconds(value), 0, kMax);
}

// Values below 2^(bits + 1) have a bucket each. For larger values the highest bits + 1 bits choose
// it: the position of the leading bit gives the number of dropped low bits, the other bits give the
// index within that group.
size_t LatencyHistogram::BucketIndex(int64_t micros) const {
  const int dropped = std::max(0, BitWidth(micros) - (bits_ + 1));
  return (static_cast<size_t>(dropped) << bits_) + static_cast<size_t>(micros >> dropped);
}

int64_t LatencyHistogram::BucketEnd(size_t bucket) const {
  const int64_t half = int64_t{1} << bits_;
  const auto place = static_cast<int64_t>(bucket);
  if (place < 2 * half) return place;
  const int64_t dropped = (place >> bits_) - 1;
  return ((place - dropped * half + 1) << dropped) - 1;
}

void LatencyHistogram::Record(absl::Duration value) {
  const int64_t micros = ToMicros(value);
  ++counts_[BucketIndex(micros)];
  ++count_;
  max_ = std::max(max_, micros);
  sum_ += static_cast<double>(micros);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  assert(bits_ == other.bits_);
  for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    counts_[bucket] += other.counts_[bucket];
  }
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

absl::Duration LatencyHistogram::mean() const {
  if (count_ == 0) return absl::ZeroDuration();
  return absl::Microseconds(sum_ / static_cast<double>(count_));
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  // Without the error of the product: 99.9 / 100 * 1000 is a little more than 999.
  const double rank = percent / 100 * static_cast<double>(count_);
  const auto wanted = static_cast<int64_t>(std::ceil(rank * (1 - 1e-12)));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (counts_[bucket] > 0 && seen >= wanted) {
      return absl::Microseconds(std::min(BucketEnd(bucket), max_));
    }
  }
  return max();
}

int64_t LatencyHistogram::CountUpTo(absl::Duration limit) const {
  const size_t last = BucketIndex(ToMicros(limit));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket <= last; ++bucket) seen += counts_[bucket];
  return seen;
}

}  // namespace linnet::client
