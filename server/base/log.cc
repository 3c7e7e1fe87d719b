#include "server/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>

#include "server/base/line_writer.h"

namespace linnet::server {
namespace {

constexpr char kText[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
bool json_lines = false;
LogLevel configured = LogLevel::kInfo;

constexpr LogLevel kLevels[] = {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning,
                                LogLevel::kError};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string Line(absl::string_view event, std::span<const LogField> fields) {
  return json_lines ? FormatJsonFields(event, fields) : FormatLogLine(event, fields);
}

std::atomic<int64_t> lost_lines = 0;

// Writes to standard error with LineWriter. Once there is room again, it reports the number of lost
// lines.
class StandardError final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (const int64_t lost = lost_lines - reported_; lost > 0) {
      const LogField lines("lines", lost);
      const std::string text = Line("log_lines_lost", {&lines, 1});
      if (Write({message.logger_name, spdlog::level::warn, text})) reported_ += lost;
    }
    if (!Write(message)) ++lost_lines;
  }
  bool Write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return writer_.Write({line.data(), line.size()});
  }
  void flush_() override {}

  LineWriter writer_{STDERR_FILENO};
  int64_t reported_ = 0;
};

// Standard output is reserved for the line "ready". The logger is leaked on purpose: threads may
// log until the process ends.
spdlog::logger& Logger() {
  static spdlog::logger& logger = [&]() -> spdlog::logger& {
    auto* made = new spdlog::logger("linnet", std::make_shared<StandardError>());
    made->set_pattern(kText, spdlog::pattern_time_type::utc);
    return *made;
  }();
  return logger;
}

// Quotes a text as a JSON string. Invalid UTF-8 is replaced: gRPC's errors repeat headers of the
// peer.
std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool NeedsQuotes(absl::string_view value) {
  if (value.empty()) return true;
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return true;
  }
  return false;
}

}  // namespace

std::string FormatJsonFields(absl::string_view event, std::span<const LogField> fields) {
  std::string line = absl::StrCat("\"event\":", Quoted(event));
  for (const LogField& field : fields)
    absl::StrAppend(&line, ",", Quoted(field.key), ":", Quoted(field.value));
  return line;
}

std::string FormatLogLine(absl::string_view event, std::span<const LogField> fields) {
  std::string line(event);
  for (const LogField& field : fields) {
    if (NeedsQuotes(field.value)) {
      absl::StrAppend(&line, " ", field.key, "=", Quoted(field.value));
    } else {
      absl::StrAppend(&line, " ", field.key, "=", field.value);
    }
  }
  return line;
}

void AddTrace(const TraceContext& trace, std::vector<LogField>& fields) {
  if (trace.trace_id.empty()) return;
  fields.emplace_back("trace_id", trace.trace_id);
  fields.emplace_back("span_id", trace.span_id);
}

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  Log(level, event, std::span<const LogField>(fields.begin(), fields.size()));
}

void Log(LogLevel level, absl::string_view event, std::span<const LogField> fields) {
  const spdlog::level::level_enum spdlog_level = ToSpdlog(level);
  if (!Logger().should_log(spdlog_level)) return;
  Logger().log(spdlog_level, "{}", Line(event, fields));
}

int64_t LostLogLines() { return lost_lines; }

absl::Status SetLogFormat(absl::string_view name) {
  if (name != "text" && name != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("log format \"", name, "\" is none of text, json"));
  }
  json_lines = name == "json";
  Logger().set_pattern(json_lines ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})" : kText,
                       spdlog::pattern_time_type::utc);
  return absl::OkStatus();
}

absl::Status SetLogLevel(absl::string_view name) {
  for (LogLevel level : kLevels) {
    if (name != LogLevelName(level)) continue;
    configured = level;
    Logger().set_level(ToSpdlog(level));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log level \"", name, "\" is none of debug, info, warning, error"));
}

LogLevel CurrentLogLevel() {
  const auto level = std::find_if(std::begin(kLevels), std::end(kLevels), [](LogLevel level) {
    return ToSpdlog(level) == Logger().level();
  });
  return level == std::end(kLevels) ? configured : *level;
}

LogLevel ChangeLogLevel(std::optional<LogLevel> level) {
  const LogLevel before = CurrentLogLevel();
  const LogLevel now = level.value_or(configured);
  Logger().set_level(ToSpdlog(now));
  // At level error, so that the change is logged at every level.
  Log(LogLevel::kError, "log_level",
      {{"before", LogLevelName(before)}, {"now", LogLevelName(now)}});
  return before;
}

absl::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace linnet::server
