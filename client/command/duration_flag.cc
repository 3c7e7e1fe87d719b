#include "client/command/duration_flag.h"

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"

namespace linnet::client {

absl::Duration ParseDuration(const char* flag, const std::string& text) {
  absl::Duration duration;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) return absl::Seconds(seconds);
  if (absl::ParseDuration(text, &duration)) return duration;
  throw CLI::ValidationError(flag, "\"" + text + "\" is no duration like 90, 500ms or 2m");
}

}  // namespace linnet::client
