#include "client/cli/text/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace linnet::client {
namespace {

constexpr absl::Duration kBetween = absl::Milliseconds(200);

std::string Rate(const Advance& advance) {
  const double seconds = std::max(1e-3, absl::ToDoubleSeconds(advance.elapsed));
  const double rate = advance.lines / seconds;
  return rate < 10 ? absl::StrFormat("%.1f/s", rate) : absl::StrFormat("%.0f/s", rate);
}

std::string Repeat(const char* what, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += what;
  return text;
}

}  // namespace

std::string ClockText(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 3600) return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
  return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string ProgressText(const Advance& advance, int columns, bool colour) {
  std::string text =
      absl::StrCat(advance.lines, advance.lines == 1 ? " line, " : " lines, ", Rate(advance), ", ");
  if (advance.total_bytes <= 0 || advance.bytes <= 0) {
    return (text + ClockText(advance.elapsed)).substr(0, std::max(0, columns - 1));
  }
  const double share = std::min(1.0, 1.0 * advance.bytes / advance.total_bytes);
  const double done = std::max<double>(1, advance.bytes - advance.first_byte);
  const double left = std::max<int64_t>(0, advance.total_bytes - advance.bytes);
  absl::StrAppend(&text, ClockText(advance.elapsed * (left / done)), " left");
  const std::string percent = absl::StrFormat("%3.0f%%", std::floor(share * 100));
  // Leave one column free: some terminals wrap when the last one is filled.
  const int bar = std::min<int>(40, columns - 1 - 6 - static_cast<int>(text.size()));
  if (bar < 8) return absl::StrCat(percent, " ", text).substr(0, std::max(0, columns - 1));
  const int full = static_cast<int>(share * bar);
  return absl::StrCat(percent, " ", colour ? "\x1b[36m" : "", Repeat("━", full),
                      colour ? "\x1b[90m" : "", Repeat(colour ? "━" : "─", bar - full),
                      colour ? "\x1b[0m" : "", " ", text);
}

void Progress::Update(const Advance& advance, absl::Time now) {
  if (!shown_ || now - last_ < kBetween) return;
  last_ = now;
  drawn_ = true;
  out_ << "\r\x1b[K" << ProgressText(advance, columns_, colour_) << std::flush;
}

void Progress::Clear() {
  if (drawn_) out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

void Progress::Finish(const Advance& advance) {
  if (last_ == absl::InfinitePast()) return;  // nothing was drawn
  Clear();
  out_ << "linnet: " << advance.lines << (advance.lines == 1 ? " line in " : " lines in ")
       << ClockText(advance.elapsed) << ", " << Rate(advance) << std::endl;
}

}  // namespace linnet::client
