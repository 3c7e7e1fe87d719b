#include "server/port/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/log.h"

namespace linnet::server {
namespace {

// gRPC quotes the headers of peers that are not authenticated.
constexpr size_t kMaxMessage = 400;

void Take(LogLevel level, absl::string_view library, absl::string_view path, int line,
          absl::string_view message) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  Log(level, "library",
      {{"from", library},
       {"at", absl::StrCat(path, ":", line)},
       {"message", message.substr(0, kMaxMessage)}});
}

void TakeGrpc(gpr_log_func_args* entry) {
  const LogLevel level = entry->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : entry->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                    : LogLevel::kDebug;
  Take(level, "grpc", entry->file, entry->line, entry->message);
}

void TakeProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                  const std::string& message) {
  Take(level == google::protobuf::LOGLEVEL_FATAL ? LogLevel::kError : LogLevel::kDebug, "protobuf",
       file, line, message);
}

}  // namespace

void TakeLibraryLogs() {
  gpr_set_log_function(&TakeGrpc);
  google::protobuf::SetLogHandler(&TakeProtobuf);
}

}  // namespace linnet::server
