// linnet-server: see --help.
#include <cstdio>
#include <string>

#include "model/torch/torch_engine.h"
#include "proto/standard_files.h"
#include "server/base/log.h"
#include "server/config/options.h"
#include "server/port/library_logs.h"
#include "server/rpc/serve.h"

namespace linnet::server {
namespace {

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "linnet-server: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

// The engine options of a bundle, whose longest source always has room.
model::TorchEngineOptions ForBundle(const model::Bundle& bundle,
                                    model::TorchEngineOptions options) {
  options.encoder_cache_tokens = std::max<int64_t>(EncoderCacheTokens(options.rows),
                                                   bundle.manifest.limits().max_source_tokens());
  return options;
}

int Main(int argc, char** argv) {
  const ParsedOptions parsed = ParseOptions(argc, argv, ProcessEnvironment());
  if (!parsed.run) {
    std::fputs(parsed.text.c_str(), parsed.exit_status == 0 ? stdout : stderr);
    return parsed.exit_status;
  }
  const Options& options = parsed.options;
  model::TorchEngineOptions engine{.threads = options.threads, .rows = options.max_batch_rows};
  auto device = model::ParseDevice(options.device);
  if (!device.ok()) return Fail(device.status(), kUsageError);
  engine.device = *device;
  auto compute = model::ParseComputeType(options.compute);
  if (!compute.ok()) return Fail(compute.status(), kUsageError);
  engine.compute = *compute;
  auto shortlist = model::ParseShortlistUse(options.shortlist);
  if (!shortlist.ok()) return Fail(shortlist.status(), kUsageError);
  engine.shortlist = *shortlist;
  engine.batch_invariant = options.batch_invariant;
  if (auto status = SetLogLevel(options.log_level); !status.ok()) return Fail(status, kUsageError);
  if (auto status = SetLogFormat(options.log_format); !status.ok())
    return Fail(status, kUsageError);
  TakeLibraryLogs();

  return Serve(
      parsed,
      [engine](const model::Bundle& bundle) {
        return model::MakeTorchEngine(bundle, ForBundle(bundle, engine));
      },
      [engine](const model::Bundle& bundle) {
        return model::TorchEngineInfo(bundle, ForBundle(bundle, engine));
      });
}

}  // namespace
}  // namespace linnet::server

int main(int argc, char** argv) {
  linnet::OpenStandardFiles();
  return linnet::server::Main(argc, argv);
}
