#include "client/run/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace linnet::client {
namespace {

constexpr double kMaxRate = 1e6;

bool ParseRate(absl::string_view text, double* rate) {
  return absl::SimpleAtod(text, rate) && *rate >= 0 && *rate <= kMaxRate;
}

bool ParsePart(absl::string_view text, RatePart* part) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  double seconds = 0;
  if (absl::SimpleAtod(halves.second, &seconds)) {
    part->length = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(halves.second, &part->length)) {
    return false;
  }
  if (part->length <= absl::ZeroDuration() || part->length > absl::Hours(24)) return false;
  const size_t dots = halves.first.find("..");
  if (dots == absl::string_view::npos) {
    if (!ParseRate(halves.first, &part->from)) return false;
    part->to = part->from;
    return true;
  }
  return ParseRate(halves.first.substr(0, dots), &part->from) &&
         ParseRate(halves.first.substr(dots + 2), &part->to);
}

}  // namespace

RateSchedule RateSchedule::Constant(double calls_per_second) {
  RateSchedule schedule;
  schedule.parts_ = {{absl::InfiniteDuration(), calls_per_second, calls_per_second}};
  return schedule;
}

absl::StatusOr<RateSchedule> RateSchedule::Parse(absl::string_view text) {
  RateSchedule schedule;
  bool any_call = false;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    RatePart part;
    if (!ParsePart(word, &part)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word,
                       "\" is no part of a schedule: RATE:TIME as in 20:30s, or "
                       "FROM..TO:TIME as in 0..50:1m, with rates of 0 to ",
                       static_cast<int64_t>(kMaxRate), " calls a second and times up to 24h"));
    }
    any_call = any_call || part.from > 0 || part.to > 0;
    schedule.parts_.push_back(part);
  }
  if (!any_call) {
    return absl::InvalidArgumentError(absl::StrCat("schedule \"", text, "\" offers no call"));
  }
  return schedule;
}

RateSchedule RateSchedule::After(absl::Duration length) const {
  RateSchedule schedule = *this;
  if (length > absl::ZeroDuration()) {
    const double rate = parts_.front().from;
    schedule.parts_.insert(schedule.parts_.begin(), {length, rate, rate});
  }
  return schedule;
}

absl::Duration RateSchedule::DueTime(double calls) const {
  constexpr double kRounding = 1e-9;  // of the integral over a part, in calls
  absl::Duration begin;
  for (const RatePart& part : parts_) {
    if (part.length == absl::InfiniteDuration()) return begin + absl::Seconds(calls / part.from);
    const double seconds = absl::ToDoubleSeconds(part.length);
    const double in_part = (part.from + part.to) / 2 * seconds;
    if (calls < in_part - kRounding) {
      if (calls <= 0) return begin;
      // Solves calls = from t + slope t^2 / 2 for t, in the form without cancellation.
      const double slope = (part.to - part.from) / seconds;
      const double root = std::sqrt(std::max(0.0, part.from * part.from + 2 * slope * calls));
      return begin + absl::Seconds(2 * calls / (part.from + root));
    }
    calls = std::max(0.0, calls - in_part);
    begin += part.length;
  }
  return calls > 0 ? absl::InfiniteDuration() : begin;
}

absl::Duration RateSchedule::length() const {
  absl::Duration length;
  for (const RatePart& part : parts_) length += part.length;
  return length;
}

double RateSchedule::MeanRate(absl::Duration length) const {
  double calls = 0;
  absl::Duration left = length;
  for (const RatePart& part : parts_) {
    if (left <= absl::ZeroDuration()) break;
    const absl::Duration taken = std::min(left, part.length);
    const double share =
        part.length == absl::InfiniteDuration() ? 0 : absl::FDivDuration(taken, part.length);
    const double end = part.from + (part.to - part.from) * share;
    calls += (part.from + end) / 2 * absl::ToDoubleSeconds(taken);
    left -= taken;
  }
  return calls / absl::ToDoubleSeconds(length);
}

}  // namespace linnet::client
