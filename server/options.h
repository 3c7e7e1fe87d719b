#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission.h"
#include "server/batcher.h"
#include "server/text_request.h"

namespace linnet::server {

// What linnet-server is told on its command line, checked as far as it can be without a model.
struct Options {
  std::filesystem::path models;
  int64_t max_model_bytes = 0;  // of all models in memory; 0 = any number
  std::string listen = "127.0.0.1:50051";
  std::string metrics_listen = "127.0.0.1:9464";

  // Of each engine; device and compute are names that the engine's library reads, because it knows
  // what is built.
  std::string device = "cpu";
  std::string compute = "auto";
  int threads = 0;  // 0 = one per core that this process may use
  int rows = 160;
  int64_t memory_tokens = 16384;

  BatcherOptions batcher = {.shed = {.interval = absl::Seconds(5)}};
  AdmissionLimits admission;
  TextLimits text;
  int text_threads = 2;
  absl::Duration lame_duck = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);
  absl::Duration engine_patience = absl::Seconds(60);
  std::string log_level = "info";
};

// What the command line comes to: options, or a text to print and an exit status.
struct ParsedOptions {
  Options options;
  bool run = false;  // otherwise print `text` and leave with `exit_status`
  std::string text;
  int exit_status = 0;
};

// Flags of linnet-server. `--help` and `--version` lead to a text and 0, anything that is wrong to
// a message and 2.
ParsedOptions ParseOptions(int argc, const char* const* argv);

// HOST:PORT, [IPv6]:PORT; the port is 0 to 65535. InvalidArgumentError otherwise.
absl::Status CheckAddress(absl::string_view address);
// The same host with the port that the system picked.
std::string WithPort(absl::string_view address, int port);

// The options in effect, as the log shows them at start.
void LogOptions(const Options& options);

}  // namespace linnet::server
