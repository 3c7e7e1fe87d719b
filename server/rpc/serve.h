#pragma once

#include "server/config/options.h"
#include "server/models/catalog.h"

namespace linnet::server {

// Exit statuses of linnet-server.
constexpr int kStopped = 0;
constexpr int kCouldNotStart = 1;
constexpr int kUsageError = 2;
// An engine stalled, lost its device or could not be restarted, or its thread threw: the process
// must be restarted.
constexpr int kEngineFailed = 3;

// `info` is needed for load-on-demand alone. Serves until a signal or the failure of an engine ends
// it, and returns the exit status. Call it once, before the process has other threads.
int Serve(const ParsedOptions& parsed, const Catalog::EngineFactory& factory,
          const EngineInfoFactory& info = nullptr);

}  // namespace linnet::server
