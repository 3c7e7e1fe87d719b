#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/trace_context.h"

namespace linnet::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  LogField(absl::string_view key, const absl::AlphaNum& value) : key(key), value(value.Piece()) {}
  absl::string_view key;
  std::string value;
};

// Adds `trace_id` and `span_id`, the field names that log collectors expect; nothing if the call
// has no trace.
void AddTrace(const TraceContext& trace, std::vector<LogField>& fields);

// Writes one line per event to standard error: time, level, event, key=value; or the same as a JSON
// object. Values with blanks or quotes are quoted. Never pass text of a request, only counts and
// sizes. A line that cannot be written at once (disk full, pipe not read) is dropped, so that the
// log never blocks the server (LineWriter). Thread-safe.
void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);
void Log(LogLevel level, absl::string_view event, std::span<const LogField> fields);

// Number of lines dropped since the start. The event log_lines_lost reports them once a line can be
// written again.
int64_t LostLogLines();

// Sets the configured level: "debug", "info", "warning" or "error"; InvalidArgumentError otherwise.
// Call it at start, before there are other threads.
absl::Status SetLogLevel(absl::string_view name);
// Changes the level while the server runs; nullopt restores the configured level. Returns the
// previous level.
LogLevel ChangeLogLevel(std::optional<LogLevel> level);
LogLevel CurrentLogLevel();
absl::string_view LogLevelName(LogLevel level);

// "text" or "json"; InvalidArgumentError otherwise. Call it at start, before there are other
// threads.
absl::Status SetLogFormat(absl::string_view name);

// Returns `event key=value …`, without time and level.
std::string FormatLogLine(absl::string_view event, std::span<const LogField> fields);
inline std::string FormatLogLine(absl::string_view event, std::initializer_list<LogField> fields) {
  return FormatLogLine(event, std::span<const LogField>(fields.begin(), fields.size()));
}
// Returns `"event":"…","key":"value" …`, without time, level and braces. Invalid UTF-8 is replaced.
std::string FormatJsonFields(absl::string_view event, std::span<const LogField> fields);
inline std::string FormatJsonFields(absl::string_view event,
                                    std::initializer_list<LogField> fields) {
  return FormatJsonFields(event, std::span<const LogField>(fields.begin(), fields.size()));
}

}  // namespace linnet::server
