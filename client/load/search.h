#pragma once

#include <optional>

namespace linnet::client {

// Looks for the highest rate that a server holds, by probes. Pure: somebody
// else makes them.
//
// The rate doubles until a probe does not hold, then the gap is halved (in
// ratios) until it is narrow. Whoever tries often will be lucky once, so the
// rate that is left is probed again, and given up for the next lower one as
// long as it does not hold.
class RateSearch {
 public:
  // 0 < least <= most; the rate that does not hold is at most 1 + precision
  // times the one found.
  RateSearch(double min, double max, double precision);

  // What to probe next; nullopt: nothing, see found().
  std::optional<double> Next() const;
  // How the probe of Next() went.
  void Add(bool held);

  // The highest rate that held, and held again (or a higher one did before);
  // nullopt if even `least` did not.
  std::optional<double> found() const { return found_; }

 private:
  const double min_;
  const double max_;
  const double precision_;
  std::optional<double> held_;    // the highest until now
  std::optional<double> failed_;  // the lowest until now
  std::optional<double> found_;
  bool ended_ = false;
};

}  // namespace linnet::client
