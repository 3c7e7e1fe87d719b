#pragma once

#include <optional>

namespace linnet::client {

// Searches the highest rate at which a server meets its objective ("holds"). Pure: the caller makes
// the probes.
//
// The rate doubles until a probe does not hold; then the gap is bisected (in ratios) until it is
// narrow. One of many probes may hold by chance, so the resulting rate is probed again and lowered
// as long as it does not hold.
class RateSearch {
 public:
  // 0 < min <= max; the lowest rate that did not hold is at most 1 + precision times the one found.
  RateSearch(double min, double max, double precision);

  // The rate to probe next; nullopt at the end of the search.
  std::optional<double> Next() const;
  // Adds the result of the probe of Next().
  void Add(bool held);

  // The highest rate that held twice, or once below a rate that held before; nullopt if even `min`
  // did not hold.
  std::optional<double> found() const { return found_; }

 private:
  const double min_;
  const double max_;
  const double precision_;
  std::optional<double> held_;    // the highest rate that held
  std::optional<double> failed_;  // the lowest rate that did not hold
  std::optional<double> found_;
  bool ended_ = false;
};

}  // namespace linnet::client
