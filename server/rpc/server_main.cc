// linnet-server: see --help.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/time/clock.h"
#include "model/torch/torch_engine.h"
#include "model/torch/wait_policy.h"
#include "server/log.h"
#include "server/options.h"
#include "server/rpc/library_logs.h"
#include "server/rpc/server.h"

namespace linnet::server {
namespace {

constexpr int kStopped = 0;
constexpr int kCouldNotStart = 1;
constexpr int kUsageError = 2;
constexpr int kEngineStuck = 3;

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "linnet-server: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

int Main(int argc, char** argv) {
  const ParsedOptions parsed = ParseOptions(argc, argv, ProcessEnvironment());
  if (!parsed.run) {
    std::fputs(parsed.text.c_str(), parsed.exit_status == 0 ? stdout : stderr);
    return parsed.exit_status;
  }
  const Options& options = parsed.options;
  model::TorchEngineOptions engine{
      .threads = options.threads, .rows = options.rows, .memory_tokens = options.memory_tokens};
  auto device = model::ParseDevice(options.device);
  if (!device.ok()) return Fail(device.status(), kUsageError);
  engine.device = *device;
  auto compute = model::ParseComputeType(options.compute);
  if (!compute.ok()) return Fail(compute.status(), kUsageError);
  engine.compute = *compute;
  auto search = model::ParseSearchPlace(options.search);
  if (!search.ok()) return Fail(search.status(), kUsageError);
  engine.search = *search;
  engine.graphs = options.graphs;
  engine.shortlist = options.shortlist;
  if (auto status = SetLogLevel(options.log_level); !status.ok()) return Fail(status, kUsageError);
  if (auto status = SetLogFormat(options.log_format); !status.ok())
    return Fail(status, kUsageError);
  TakeLibraryLogs();

  // A log that nobody reads any more is no reason to end.
  std::signal(SIGPIPE, SIG_IGN);

  // Blocked before any thread starts, so that only sigwait below receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  LogSettings(parsed.settings);
  auto server = Server::Start(options, [engine](const model::Bundle& bundle) {
    return model::MakeTorchEngine(bundle, engine);
  });
  if (!server.ok()) return Fail(server.status(), kCouldNotStart);
  const std::string admin = (*server)->admin_address();
  std::printf("ready grpc=%s metrics=%s%s\n", (*server)->grpc_address().c_str(),
              (*server)->metrics_address().c_str(),
              admin.empty() ? "" : (" admin=" + admin).c_str());
  std::fflush(stdout);

  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal != SIGTERM && signal != SIGINT) {
    if (signal == SIGHUP) (*server)->ReloadSoon();
    if (signal == SIGUSR1) ChangeLogLevel(LogLevel::kDebug);
    if (signal == SIGUSR2) ChangeLogLevel(std::nullopt);
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends the process at once
  Log(LogLevel::kInfo, "draining",
      {{"signal", signal},
       {"lame_duck", absl::FormatDuration(options.lame_duck)},
       {"timeout", absl::FormatDuration(options.drain_timeout)}});
  const absl::Time before = absl::Now();
  (*server)->Drain(options.lame_duck, options.drain_timeout);
  const bool stuck = (*server)->stuck();
  Log(stuck ? LogLevel::kError : LogLevel::kInfo, "stopped",
      {{"drain_seconds", absl::ToDoubleSeconds(absl::Now() - before)}, {"engine_stuck", stuck}});
  // Nobody can wait for that thread.
  if (stuck) std::_Exit(kEngineStuck);
  return kStopped;
}

}  // namespace
}  // namespace linnet::server

int main(int argc, char** argv) {
  linnet::model::WaitPassively(argv);
  return linnet::server::Main(argc, argv);
}
