// linnet-server with a faulty engine, for tests only.
//
// The max_target_tokens of a call selects the fault. LINNET_FAULT_LOAD=hang makes engines that are
// never ready.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "server/base/log.h"
#include "server/config/options.h"
#include "server/port/library_logs.h"
#include "server/rpc/serve.h"
#include "tests/support/echo_engine.h"

namespace linnet::server {
namespace {

constexpr int kStalls = 41;
constexpr int kLosesTheDevice = 42;
constexpr int kThrows = 43;

[[noreturn]] void Stall() {
  while (true) pause();
}

class FaultyEngine final : public test::EchoEngine {
 public:
  using EchoEngine::EchoEngine;

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    for (const auto& input : inputs) {
      const int fault = input.options.max_target_tokens;
      if (fault == kStalls) Stall();
      if (fault == kThrows) throw std::runtime_error("a kernel failed");
      if (fault == kLosesTheDevice)
        return model::DeviceLost(absl::InternalError("CUDA error: device-side assert triggered"));
    }
    return EchoEngine::Add(inputs);
  }
};

int Main(int argc, char** argv) {
  const ParsedOptions parsed = ParseOptions(argc, argv, ProcessEnvironment());
  if (!parsed.run) {
    std::fputs(parsed.text.c_str(), stderr);
    return parsed.exit_status;
  }
  TakeLibraryLogs();
  const char* load = std::getenv("LINNET_FAULT_LOAD");
  const bool hangs = load != nullptr && std::string(load) == "hang";
  const test::EchoEngine::Options engine{
      .limits = {.max_target_tokens = 1024, .max_source_tokens = 1024}};
  return Serve(
      parsed,
      [&](const model::Bundle&) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
        if (hangs) Stall();
        return std::make_unique<FaultyEngine>(engine);
      },
      [&](const model::Bundle&) { return test::EchoEngine(engine).info(); });
}

}  // namespace
}  // namespace linnet::server

int main(int argc, char** argv) { return linnet::server::Main(argc, argv); }
