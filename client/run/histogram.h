#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace linnet::client {

// A histogram of durations whose bucket width grows with the value, as in Gil Tene's HdrHistogram:
// a percentile is at most 2^-bits (1/1024) above the true one, from a microsecond to more than a
// day, in a fixed 230 KB; with 5 bits in 9 KB. (Debian 12 has no package of the C library.)
class LatencyHistogram {
 public:
  explicit LatencyHistogram(int bits = 10);

  // Clamps the value to [0, kMax] and drops fractions of a microsecond.
  void Record(absl::Duration value);

  // Adds all values of a histogram with the same number of bits.
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  absl::Duration max() const { return absl::Microseconds(max_); }  // exact
  absl::Duration mean() const;                                     // exact; zero if empty

  // The smallest recorded value v such that at least `percent` per cent of all values are at most
  // v, rounded up to the end of its bucket but never above max(). 0 < percent <= 100. Zero if
  // empty.
  absl::Duration Percentile(double percent) const;

  // The number of values that are at most `limit`, rounded up to the end of its bucket.
  int64_t CountUpTo(absl::Duration limit) const;

 private:
  static constexpr int kMaxBits = 37;  // 38 hours in microseconds
  static constexpr int64_t kMax = (int64_t{1} << kMaxBits) - 1;

  static int64_t ToMicros(absl::Duration value);
  size_t BucketIndex(int64_t micros) const;
  int64_t BucketEnd(size_t bucket) const;  // the largest value in the bucket

  int bits_;  // a power of two is divided into 2^bits buckets
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace linnet::client
