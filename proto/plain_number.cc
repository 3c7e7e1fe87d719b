#include "proto/plain_number.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace linnet {

std::string CheckPlainNumber(const std::string& value) {
  if (value.size() > 1 && value[0] == '0' && absl::ascii_isalnum(value[1]))
    return absl::StrCat("Value ", value, " begins with 0: write it in decimal without");
  double number;
  return absl::SimpleAtod(value, &number) && std::isnan(number)
             ? absl::StrCat("Value ", value, " is not a number")
             : "";
}

}  // namespace linnet
