#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/schedule/admission.h"
#include "server/schedule/batcher.h"
#include "server/text/text_request.h"

namespace linnet::server {

// How calls get in, and who may make them.
struct SecurityOptions {
  // Files in PEM, read again when they change. Without a certificate nothing is encrypted.
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;             // clients must show a certificate that it signed
  std::string tokens;                    // TokenTable; read again when it changes
  bool tls_terminated_upstream = false;  // tokens in plain text on any address
  std::string trusted_proxies;           // TrustedProxies
  bool reflection = true;
  bool channelz = false;
  int max_metadata_bytes = 16384;
  int max_connections = 4096;           // at once; 0: any number
  int max_connections_per_address = 0;  // of them; 0: any number
  int max_streams = 100;                // calls at once on one connection
  absl::Duration handshake_timeout = absl::Seconds(20);
  absl::Duration unauthenticated_timeout = absl::Seconds(30);
  int64_t max_unauthenticated_bytes = 8 << 20;  // that such connections hold together
  int64_t max_transport_bytes = 256 << 20;      // of gRPC's buffers
  absl::Duration request_timeout = absl::Seconds(60);
  absl::Duration read_timeout = absl::Seconds(60);
  absl::Duration max_connection_age = absl::Hours(1);
  absl::Duration max_connection_age_grace = absl::Hours(1);
  absl::Duration max_idle = absl::Hours(1);
  absl::Duration keepalive = absl::Minutes(1);
};

// What linnet-server is told, checked as far as it can be without a model.
struct Options {
  std::filesystem::path models;
  std::filesystem::path bundle_keys;  // BundleKeys; empty: bundles need no signature
  int64_t max_model_bytes = 0;        // of all models in memory; 0 = any number
  std::string listen = "127.0.0.1:50051";
  std::string metrics_listen = "127.0.0.1:9464";
  std::string admin_listen;  // empty: nowhere
  SecurityOptions security;

  // Of each engine; device and compute are names that the engine's library reads, because it knows
  // what is built.
  std::string device = "cpu";
  std::string compute = "auto";
  std::string search = "auto";
  bool graphs = true;
  bool shortlist = false;  // TorchEngineOptions
  int threads = 0;         // 0 = one per core that this process may use
  int rows = 160;
  int64_t encoder_cache_tokens = 16384;
  absl::Duration engine_stall_timeout = absl::Seconds(60);
  absl::Duration engine_load_timeout = absl::Minutes(5);
  std::filesystem::path failure_record;  // RecordFailure; empty: nowhere

  BatcherOptions batcher = {.shed = {.interval = absl::Seconds(5)}};
  AdmissionLimits admission;
  TextLimits text = {.default_deadline = absl::Minutes(5), .max_deadline = absl::Hours(1)};
  int text_threads = 2;
  absl::Duration lame_duck = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);
  std::string log_level = "info";
  std::string log_format = "text";
  absl::Duration slow_call = absl::Seconds(10);
};

// One setting: the same name as a flag (--max-streams), in the environment
// (LINNET_SERVER_MAX_STREAMS) and in the file (max-streams).
struct Setting {
  std::string group;
  std::string name;
  std::string value;  // in effect
  std::string default_value;
  std::string meaning;

  std::string environment() const;
};

// What all that comes to: options, or a text to print and an exit status.
struct ParsedOptions {
  Options options;
  std::vector<Setting> settings;
  bool run = false;  // otherwise print `text` and leave with `exit_status`
  std::string text;
  int exit_status = 0;
};

// A flag goes before the environment, that before the file that --config names (`name = value`, one
// a line), and that before the default; an empty value there is none. `--help`, `--version` and
// `--print-config`, which prints the settings in effect as such a file, lead to a text and 0;
// anything that is wrong, an unknown name among it, to a message and 2. `environment` is that of
// the process, "NAME=VALUE".
ParsedOptions ParseOptions(int argc, const char* const* argv,
                           const std::vector<std::string>& environment = {});
// environ.
std::vector<std::string> ProcessEnvironment();

// HOST:PORT, [IPv6]:PORT; the port is 0 to 65535. InvalidArgumentError otherwise.
absl::Status CheckAddress(absl::string_view address);
// The same host with the port that the system picked.
std::string WithPort(absl::string_view address, int port);

// The settings in effect, as the log shows them at start.
void LogSettings(const std::vector<Setting>& settings);

}  // namespace linnet::server
