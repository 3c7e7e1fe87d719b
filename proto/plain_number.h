#pragma once

#include <string>

namespace linnet {

// Returns what is wrong with the number of a flag or a setting, or "". A check of CLI11 options: it
// refuses what CLI11 would read otherwise than it is written, "010" as octal, which is 8, and "nan"
// as in any range.
std::string CheckPlainNumber(const std::string& value);

}  // namespace linnet
