#pragma once

#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace linnet::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  LogField(absl::string_view key, const absl::AlphaNum& value) : key(key), value(value.Piece()) {}
  absl::string_view key;
  std::string value;
};

// One line per event on standard error: time, level, event, key=value. Values with blanks or quotes
// are quoted. Never pass text of a request: counts and sizes say enough. Thread-safe.
void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);

// "debug", "info", "warning" or "error"; InvalidArgumentError lists them.
absl::Status SetLogLevel(absl::string_view name);

// event key=value …, without time and level.
std::string FormatLogLine(absl::string_view event, std::initializer_list<LogField> fields);

}  // namespace linnet::server
