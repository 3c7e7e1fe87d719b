#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/cache/answer_cache.h"
#include "server/request/text_request.h"
#include "server/schedule/batcher_options.h"

namespace linnet::server {

// Network and security settings.
struct SecurityOptions {
  // Files in PEM, reloaded when they change. Without a certificate there is no encryption.
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;             // clients must present a certificate that it signed
  std::string tokens;                    // file of a TokenTable; reloaded when it changes
  bool tls_terminated_upstream = false;  // accept tokens in plain text on any address
  std::string trusted_proxies;           // TrustedProxies
  int max_connections = 4096;            // open at once; 0: no limit
  int max_connections_per_address = 0;   // 0: no limit
  absl::Duration unauthenticated_timeout = absl::Seconds(30);
  int64_t max_unauthenticated_bytes = 8 << 20;         // held by all such connections
  int64_t max_transport_bytes = 256 << 20;             // of gRPC's buffers: max-request-memory
  absl::Duration request_timeout = absl::Seconds(60);  // to send a request, and to read a message
  absl::Duration max_connection_age = absl::Hours(1);
  absl::Duration max_connection_age_grace = absl::Hours(1);  // max-deadline
  absl::Duration keepalive = absl::Minutes(1);               // at most request-timeout
};

// Settings of linnet-server, checked as far as possible without a model.
struct Options {
  std::filesystem::path models;
  std::filesystem::path bundle_keys;  // file of BundleKeys; empty: no signature is required
  int64_t max_model_bytes = 0;        // of all models in memory; 0: no limit
  bool load_on_demand = false;        // engines are loaded when they are first used
  std::string pinned_models;          // names of those that are not, with commas
  bool allow_missing = false;         // start without the bundles that cannot be loaded
  std::string listen = "127.0.0.1:50051";
  std::string metrics_listen = "127.0.0.1:9464";
  std::string admin_listen;  // empty: not served
  SecurityOptions security;

  // Settings of each engine. Device, compute and shortlist are names parsed by the engine's
  // library, which knows what is built.
  std::string device = "cpu";
  std::string compute = "auto";
  std::string shortlist = "auto";
  int threads = 0;         // 0 = one per core that this process may use
  int max_batch_rows = 0;  // CompleteOptions sets it if it is 0
  absl::Duration engine_stall_timeout = absl::Seconds(60);
  absl::Duration engine_load_timeout = absl::Minutes(5);  // follows engine_stall_timeout
  std::filesystem::path failure_record;                   // for RecordFailure; empty: none

  bool batch_invariant = false;    // TorchEngineOptions
  int64_t answer_cache_bytes = 0;  // 0: answers are not kept, and identical sequences not coalesced
  CacheTenant cache_tenant = CacheTenant::kToken;
  BatcherOptions batcher = {.shed = {.interval = absl::Seconds(5)}};  // follows its max_wait
  AdmissionLimits admission;
  TextLimits text = {.default_deadline = absl::Minutes(5), .max_deadline = absl::Hours(1)};
  absl::Duration lame_duck = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);
  std::string log_level = "info";
  std::string log_format = "text";
  absl::Duration slow_call = absl::Seconds(10);
};

// Source tokens in the encoder KV cache of an engine of so many rows.
int64_t EncoderCacheTokens(int rows);
// Threads that split and tokenise: one for eight cores, at least 2 and at most 16.
int TextThreads(int cores);

// One setting: the same name as a flag (--max-connections), in the environment
// (LINNET_SERVER_MAX_CONNECTIONS) and in the file (max-connections).
struct Setting {
  std::string group;
  std::string name;
  std::string value;  // in effect
  std::string default_value;
  std::string meaning;

  std::string environment() const;
};

// The result of parsing: options, or a text to print and an exit status.
struct ParsedOptions {
  Options options;
  std::vector<Setting> settings;
  bool run = false;  // otherwise print `text` and exit with `exit_status`
  std::string text;
  int exit_status = 0;
};

// Parses the settings. A flag overrides the environment, which overrides the file named by --config
// (`name = value`, one per line), which overrides the default; an empty value in the environment or
// the file counts as unset. `--help`, `--help-all`, `--version` and `--print-config` (which prints
// the settings in effect in the format of the file) return a text and status 0; any error,
// including an unknown name, returns a message and status 2. `environment` has entries
// "NAME=VALUE".
ParsedOptions ParseOptions(int argc, const char* const* argv,
                           const std::vector<std::string>& environment = {});
// Returns `environ`.
std::vector<std::string> ProcessEnvironment();

// Logs the settings in effect, at start.
void LogSettings(const std::vector<Setting>& settings);

}  // namespace linnet::server
