#include "server/rpc/serve.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "server/base/failure_record.h"
#include "server/base/log.h"
#include "server/base/monotonic.h"
#include "server/base/signals.h"
#include "server/port/grpc_library.h"
#include "server/rpc/server.h"

namespace linnet::server {
namespace {

// Max time to end ports and threads after the last call; it takes milliseconds.
constexpr absl::Duration kMaxEnd = absl::Seconds(5);

// Logs the requests that the engine was running, and as suspects those that were running in an
// earlier failure too.
void LogFailure(const EngineFailure& failure, const std::filesystem::path& record) {
  Log(LogLevel::kError, "engine_failed_for_good",
      {{"model", failure.model},
       {"why", failure.why.ToString()},
       {"requests", failure.request_ids.size()},
       {"request_ids", absl::StrJoin(failure.request_ids, ",")}});
  if (record.empty()) return;
  const auto suspects = RecordFailure(record, failure.request_ids);
  if (!suspects.ok()) {
    Log(LogLevel::kError, "failure_not_recorded", {{"why", suspects.status().message()}});
    return;
  }
  for (const auto& [request_id, failures] : *suspects)
    Log(LogLevel::kError, "suspect_request", {{"request_id", request_id}, {"failures", failures}});
}

// Appends the name of a folder as one word of the ready line. A name may hold any byte.
void AppendEscapedName(std::string* line, absl::string_view name) {
  absl::StrAppend(line, absl::StrReplaceAll(absl::CHexEscape(std::string(name)),
                                            {{" ", "\\x20"}, {",", "\\x2c"}}));
}

// Ends the process within moments, even while its other threads hang. The log may be what hangs, so
// it is written by a thread of its own.
[[noreturn]] void EndAtOnce(int status) noexcept {
  constexpr std::chrono::milliseconds kTimeToLog(200);
  try {
    std::thread([status]() noexcept {
      try {
        Log(LogLevel::kError, "ended_at_once", {{"status", status}});
      } catch (...) {  // no memory for a line
      }
      std::_Exit(status);
    }).detach();
    std::this_thread::sleep_for(kTimeToLog);
  } catch (...) {  // no memory for a thread
  }
  std::_Exit(status);
}

// Ends the process at that time if it has not ended by itself. The end of a port and of the server
// joins threads, one of which may wait for a file system that hangs, also within gRPC.
void EndWithin(absl::Duration time, int status) {
  std::thread([time, status]() noexcept {
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(time));
    EndAtOnce(status);
  }).detach();
}

}  // namespace

int Serve(const ParsedOptions& parsed, const Catalog::EngineFactory& factory,
          const EngineInfoFactory& info) {
  const Options& options = parsed.options;
  // The process survives a closed log pipe.
  std::signal(SIGPIPE, SIG_IGN);
  Signals signals;  // before there are other threads

  LogSettings(parsed.settings);
  LogGrpc(LoadedGrpc(), options);
  const auto refuse = [](absl::string_view why) {
    std::fprintf(stderr, "linnet-server: %s\n", std::string(why).c_str());
    return kCouldNotStart;
  };
  if (!options.failure_record.empty()) {
    // When an engine has failed it is too late to learn that the file cannot be written.
    const auto kept = RecordFailure(options.failure_record, {});
    if (!kept.ok()) return refuse(absl::StrCat("--failure-record: ", kept.status().message()));
  }
  auto server = Server::Start(
      options, factory, info, [] { EndAtOnce(kEngineFailed); }, [&signals] { signals.Stop(); });
  if (!server.ok()) return refuse(server.status().message());
  signals.Serving([&server] { (*server)->ReloadSoon(); });
  std::string ready = absl::StrCat("ready grpc=", (*server)->grpc_address(),
                                   " metrics=", (*server)->metrics_address());
  if (const std::string admin = (*server)->admin_address(); !admin.empty())
    absl::StrAppend(&ready, " admin=", admin);
  if (const std::vector<std::string> missing = (*server)->Missing(); !missing.empty())
    absl::StrAppend(&ready, " missing=", absl::StrJoin(missing, ",", AppendEscapedName));
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);

  const int signal = signals.WaitForStop();
  if (signal == 0) LogFailure(*(*server)->failure(), options.failure_record);
  // A server that cannot answer calls needs no lame duck period.
  const absl::Duration lame_duck = signal == 0 ? absl::ZeroDuration() : options.lame_duck;
  Log(LogLevel::kInfo, "draining",
      {{"signal", signal},
       {"lame_duck", absl::FormatDuration(lame_duck)},
       {"timeout", absl::FormatDuration(options.drain_timeout)}});
  EndWithin(lame_duck + options.drain_timeout + kMaxEnd, signal == 0 ? kEngineFailed : kStopped);
  const MonotonicTime before = MonotonicNow();
  (*server)->Drain(lame_duck, options.drain_timeout);
  const bool failed = (*server)->failure().has_value();
  const absl::Duration drained = Elapsed(before, MonotonicNow());
  if (failed && signal != 0) LogFailure(*(*server)->failure(), options.failure_record);
  const int status = failed ? kEngineFailed : kStopped;
  // The threads of a stalled engine and of a load cannot be joined.
  const bool ended = !failed && (*server)->Stop();
  Log(failed ? LogLevel::kError : LogLevel::kInfo, "stopped",
      {{"drain_seconds", absl::ToDoubleSeconds(drained)}, {"status", status}});
  if (!ended) std::_Exit(status);
  return status;
}

}  // namespace linnet::server
