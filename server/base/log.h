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

// `trace_id` and `span_id`, the names by which collectors know them; nothing for a call of no
// trace.
void AddTrace(const TraceContext& trace, std::vector<LogField>& fields);

// One line per event on standard error: time, level, event, key=value; or an object of JSON with
// the same. Values with blanks or quotes are quoted. Never pass text of a request: counts and sizes
// say enough. A line that cannot be written at once, because the disk is full or nobody reads the
// pipe, is lost: nobody waits for it (LineWriter). Thread-safe.
void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);
void Log(LogLevel level, absl::string_view event, std::span<const LogField> fields);

// Lines that were lost so, since the start. The log tells of them once it can be written again.
int64_t LostLogLines();

// "debug", "info", "warning" or "error"; InvalidArgumentError lists them. What the settings say: at
// start, before there are other threads.
absl::Status SetLogLevel(absl::string_view name);
// Changes it while the server runs; nullopt is what SetLogLevel said last. Returns what it was.
LogLevel ChangeLogLevel(std::optional<LogLevel> level);
LogLevel CurrentLogLevel();
absl::string_view LogLevelName(LogLevel level);

// "text" or "json"; InvalidArgumentError otherwise. At start, before there are other threads.
absl::Status SetLogFormat(absl::string_view name);

// event key=value …, without time and level.
std::string FormatLogLine(absl::string_view event, std::span<const LogField> fields);
inline std::string FormatLogLine(absl::string_view event, std::initializer_list<LogField> fields) {
  return FormatLogLine(event, std::span<const LogField>(fields.begin(), fields.size()));
}
// "event":"…","key":"value" …, without time, level and braces. What is not UTF-8 is replaced.
std::string FormatJsonFields(absl::string_view event, std::span<const LogField> fields);
inline std::string FormatJsonFields(absl::string_view event,
                                    std::initializer_list<LogField> fields) {
  return FormatJsonFields(event, std::span<const LogField>(fields.begin(), fields.size()));
}

}  // namespace linnet::server
