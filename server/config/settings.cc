#include "server/config/settings.h"

#include <set>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "proto/plain_number.h"
#include "server/config/address.h"
#include "server/identity/trusted_proxies.h"

namespace linnet::server {
namespace {

const CLI::Validator kAddress(
    [](std::string& value) { return std::string(CheckAddress(value).message()); }, "HOST:PORT",
    "address");

const CLI::Validator kProxies(
    [](std::string& value) { return std::string(TrustedProxies::Parse(value).status().message()); },
    "ADDRESSES", "proxies");

// Adds the settings of one group.
class Group {
 public:
  Group(CLI::App& app, const char* name) : app_(app), name_(name) {}

  template <typename Value>
  CLI::Option* Add(const char* name, Value& value, const char* meaning) {
    CLI::Option* option = app_.add_option(Flag(name), value, meaning)->group(name_);
    if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>)
      option->check(CheckPlainNumber);
    return option;
  }
  CLI::Option* AddFile(const char* name, std::filesystem::path& path, const char* meaning) {
    return app_
        .add_option_function<std::string>(
            Flag(name), [&path](const std::string& value) { path = value; }, meaning)
        ->group(name_)
        ->option_text("FILE");
  }
  CLI::Option* AddSeconds(const char* name, absl::Duration& duration, const char* meaning,
                          double min = 0) {
    return app_
        .add_option_function<double>(
            Flag(name), [&duration](double value) { duration = absl::Seconds(value); }, meaning)
        ->group(name_)
        ->default_str(absl::StrCat(absl::ToDoubleSeconds(duration)))
        ->check(CheckPlainNumber)
        ->check(CLI::Range(min, 86400.0));
  }

 private:
  static std::string Flag(const char* name) { return absl::StrCat("--", name); }

  CLI::App& app_;
  const char* name_;
};

void AddModels(CLI::App& app, Options& options) {
  Group group{app, "Models"};
  group.AddFile("models", options.models, "Folder of bundles, or one bundle; SIGHUP reloads it")
      ->option_text("DIR");
  group.AddFile(
      "bundle-key", options.bundle_keys,
      "File of Ed25519 public keys in PEM, read at every load: a bundle is loaded only if its "
      "manifest.json.sig verifies with one of them; empty: no signature is required");
  group
      .Add(
          "max-model-bytes", options.max_model_bytes,
          "Max bytes of the files of all models in memory, including those that a reload replaces; "
          "with --load-on-demand, of the memory of their engines as measured when they are loaded; "
          "0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50));
  group
      .Add("load-on-demand", options.load_on_demand,
           "Load the engine of a model when it is first used, and unload the one that was used "
           "least recently, of those without calls, when --max-model-bytes is reached")
      ->default_str("false");
  group.Add("pinned-models", options.pinned_models,
            "Names of models, separated by commas, that --load-on-demand loads at start and never "
            "unloads");
  group
      .Add("allow-missing", options.allow_missing,
           "Start although some of the bundles in --models cannot be loaded, and serve the others; "
           "false: the start fails and names each of them with its cause")
      ->default_str("false");
}

void AddNetwork(CLI::App& app, Options& options) {
  Group group(app, "Network and security");
  SecurityOptions& security = options.security;
  group.Add("listen", options.listen, "Address of the gRPC service; port 0 picks a free port")
      ->check(kAddress);
  group
      .Add("metrics-listen", options.metrics_listen,
           "IPv4 address of the Prometheus metrics page; port 0 picks a free port")
      ->check(kAddress);
  group
      .Add("admin-listen", options.admin_listen,
           "Address of linnet.v1.AdminService: reloads, the batch, the log level; empty: with "
           "--tokens it is served on --listen for tokens with the right admin, otherwise not at "
           "all. An address that other machines can reach requires --tokens; port 0 picks a free "
           "port")
      ->check(kAddress);
  group.Add("tls-cert", security.tls_certificate,
            "Certificate of the server in PEM, reloaded when it changes; empty: no encryption");
  group.Add("tls-key", security.tls_key, "Private key of --tls-cert");
  group.Add("tls-client-ca", security.tls_client_ca,
            "CA certificates in PEM; clients must present a certificate that one of them signed");
  group.Add(
      "tokens", security.tokens,
      "File of bearer tokens, one per line: TOKEN NAME RIGHTS, where rights are inference, "
      "admin or both with a comma, optionally followed by max-priority=batch, normal or "
      "interactive; a token has at least 16 characters; reloaded when it changes. Requires TLS "
      "or a loopback address");
  group
      .Add("tls-terminated-upstream", security.tls_terminated_upstream,
           "Accept tokens in plain text on any address, because a mesh or proxy terminates TLS "
           "before this server; anyone who can read the traffic between them gets the tokens")
      ->default_str("false");
  group
      .Add("trusted-proxies", security.trusted_proxies,
           "Addresses and networks of trusted proxies, separated by commas: their headers identify "
           "the client (the last entry of x-forwarded-for, and x-client-certificate-subject); from "
           "all other peers both headers are ignored")
      ->check(kProxies);
  group
      .Add("reflection", security.reflection, "Serve gRPC reflection, which shows the (public) API")
      ->default_str("true");
  group
      .Add("channelz", security.channelz,
           "Serve gRPC channelz, which shows gRPC's internal state with the addresses of all peers")
      ->default_str("false");
}

void AddConnections(CLI::App& app, SecurityOptions& security) {
  Group group(app, "Connections");
  group
      .Add("max-metadata-bytes", security.max_metadata_bytes, "Max bytes of the headers of a call")
      ->check(CLI::Range(1024, 1 << 24));
  group
      .Add("max-connections", security.max_connections,
           "Max open connections; further ones are closed at once; 0: no limit")
      ->check(CLI::Range(0, 1 << 20));
  group
      .Add(
          "max-connections-per-address", security.max_connections_per_address,
          "Max open connections from one address, which may be a load balancer (for IPv6: from one "
          "/64 network); 0: no limit")
      ->check(CLI::Range(0, 1 << 20));
  group.AddSeconds(
      "unauthenticated-timeout", security.unauthenticated_timeout,
      "Seconds after which a connection is closed if no call on it has been authenticated or, "
      "without --tokens, no complete request has arrived",
      0.1);
  group
      .Add("max-unauthenticated-bytes", security.max_unauthenticated_bytes,
           "Max bytes that all such connections may hold together; above it those that hold the "
           "most are closed, and all that have sent anything at twice the limit, counting memory "
           "that gRPC has not released yet; 0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  group.AddSeconds(
      "request-timeout", security.request_timeout,
      "Max seconds that a client may take to send its request; then its call is cancelled", 0.1);
  group.AddSeconds(
      "send-timeout", security.send_timeout,
      "Max seconds that a client may take to read a message; then its call is cancelled", 0.1);
  group.Add("max-streams", security.max_streams, "Max concurrent calls on one connection")
      ->check(CLI::Range(1, 1 << 20));
  group.AddSeconds("max-idle", security.max_idle,
                   "Seconds without a call after which a connection is closed", 1);
  group.AddSeconds(
      "max-connection-age", security.max_connection_age,
      "Seconds (plus or minus a tenth) after which a connection accepts no more calls, so that "
      "its client opens a new one",
      1);
  group.AddSeconds("keepalive", security.keepalive,
                   "Seconds without traffic after which a client is pinged", 1);
}

void AddEngine(CLI::App& app, Options& options) {
  Group group(app, "Engine");
  group.Add("device", options.device, "cpu or cuda");
  group.Add("compute", options.compute,
            "auto, float32, bfloat16, float16 or int8, if supported by the build and the device");
  group
      .Add("graphs", options.graphs,
           "Launch each step on the device as a CUDA graph, captured when a model is loaded")
      ->default_str("true");
  group.Add("shortlist", options.shortlist,
            "auto, true or false: restrict searches to the tokens of a bundle's shortlist for a "
            "source, which is faster with a large vocabulary; auto where the bundle says so, but "
            "not on cuda, true in every bundle that has one");
  group
      .Add("batch-invariant", options.batch_invariant,
           "Compute every step in one shape, so that an answer does not depend on what else is in "
           "the batch, on any device and in any type; every step then costs as much as a full one. "
           "Not needed for float32 and int8 on cpu")
      ->default_str("false");
  group.Add("threads", options.threads, "Threads inside a step of each engine; 0: one per core")
      ->check(CLI::Range(0, 1024));
  group
      .Add("max-batch-rows", options.max_batch_rows,
           "Max rows (hypotheses) of a step of each engine; 0: 160 on cpu, 640 on cuda")
      ->check(CLI::Range(0, 65536));
  group
      .Add("encoder-cache-tokens", options.encoder_cache_tokens,
           "Source tokens in the encoder KV cache of each engine")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  group.AddSeconds(
      "engine-stall-timeout", options.engine_stall_timeout,
      "Seconds in one encoder call or step after which an engine counts as stalled: its calls "
      "fail, and the server exits with status 3, to be restarted",
      0.1);
  group.AddSeconds(
      "engine-load-timeout", options.engine_load_timeout,
      "Max seconds to create an engine, at start, in a reload and after a failure; then the "
      "server exits with status 3",
      0.1);
  group.AddFile(
      "failure-record", options.failure_record,
      "File of the request ids of calls that were running when an engine failed for good, kept "
      "across restarts: a call that is in it twice is logged as suspect_request; empty: no "
      "record");
  group
      .Add("max-encode-tokens", options.batcher.max_encode_tokens,
           "Max source tokens encoded between two steps")
      ->check(CLI::Range(1, 1 << 24));
}

void AddLimits(CLI::App& app, Options& options) {
  Group group(app, "Limits");
  group
      .Add("max-admitted-tokens", options.admission.max_tokens,
           "Max admitted work: (source + max target tokens) x beam size, summed over segments")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  group
      .Add(
          "max-request-memory", options.admission.max_bytes,
          "Max bytes of memory that all calls together hold, from the first byte of a request to "
          "the last of its reply. The limits of one call are derived from it: text of 1/256 of it, "
          "one segment per 16 KiB, and one line of a document in flight per 4 MiB")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
  group.AddSeconds("overload-interval", options.batcher.shed.interval,
                   "Seconds without an empty queue after which the server counts as overloaded");
  group.AddSeconds(
      "overload-max-queue-delay", options.batcher.shed.max_wait,
      "Max seconds that a call waits, during an overload, until its first sequence runs");
  group.AddSeconds("default-deadline", options.text.default_deadline,
                   "Deadline, in seconds, of a call without one, and of each line of a document",
                   0.001);
  group.AddSeconds("max-deadline", options.text.max_deadline,
                   "Max seconds that any call may take, even with a later deadline", 0.001);
  app.add_option_function<std::string>(
         "--language-check",
         [&options](const std::string& value) {
           options.text.language_check = value == "off"      ? LanguageCheck::kOff
                                         : value == "refuse" ? LanguageCheck::kRefuse
                                                             : LanguageCheck::kWarn;
         },
         "Handling of a text that is reliably detected in another language than its model reads: "
         "warn answers it with a warning, refuse rejects it, off does not check")
      ->group("Limits")
      ->default_str("warn")
      ->check(CLI::IsMember({"off", "warn", "refuse"}));
  group
      .Add("answer-cache-bytes", options.answer_cache_bytes,
           "Max bytes of answers that are kept for identical sequences, which are also coalesced "
           "while they run: an engine whose answers depend on the batch is refused; 0: off")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_option_function<std::string>(
         "--cache-tenant",
         [&options](const std::string& value) {
           options.cache_tenant = value == "shared" ? CacheTenant::kShared : CacheTenant::kToken;
         },
         "Clients that share cached answers: token, those with the same token (without --tokens, "
         "the same address), or shared, all, so that a client can tell by the time of an answer "
         "whether another one has asked for it")
      ->group("Limits")
      ->default_str("token")
      ->check(CLI::IsMember({"token", "shared"}));
  group.Add("text-threads", options.text_threads, "Threads that split and tokenise")
      ->check(CLI::Range(1, 256));
}

void AddLifecycle(CLI::App& app, Options& options) {
  Group group(app, "Lifecycle and logs");
  group.AddSeconds(
      "lame-duck", options.lame_duck,
      "Seconds after SIGTERM in which the server still accepts calls while its health is "
      "NOT_SERVING, so that load balancers can switch");
  group.AddSeconds("drain-timeout", options.drain_timeout,
                   "Max seconds for calls in flight after SIGTERM and the lame duck");
  group.Add("log-level", options.log_level, "Min level of logged events")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  group.Add("log-format", options.log_format, "Format of log lines: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  group.AddSeconds(
      "slow-call", options.slow_call,
      "Seconds after which a call is logged with the duration of its phases; 0: never");
}

}  // namespace

void AddSettings(CLI::App& app, Options& options) {
  AddModels(app, options);
  AddNetwork(app, options);
  AddConnections(app, options.security);
  AddEngine(app, options);
  AddLimits(app, options);
  AddLifecycle(app, options);
}

bool IsSetting(const CLI::Option& option) {
  return option.get_group() != "Options";  // CLI11's group of flags such as --help
}

bool IsCommonSetting(const CLI::Option& option) {
  static const auto& names = *new std::set<std::string>{"models",
                                                        "listen",
                                                        "metrics-listen",
                                                        "tls-cert",
                                                        "tls-key",
                                                        "tokens",
                                                        "device",
                                                        "compute",
                                                        "threads",
                                                        "max-batch-rows",
                                                        "max-request-memory",
                                                        "lame-duck",
                                                        "drain-timeout"};
  return names.contains(option.get_single_name());
}

absl::Status CompleteOptions(Options& options) {
  // On a GPU, where a step of many rows takes hardly longer: 128 sources with beam 5.
  constexpr int kCpuRows = 160, kCudaRows = 640;
  SecurityOptions& security = options.security;
  if (options.models.empty()) return absl::InvalidArgumentError("--models is required");
  if (!options.pinned_models.empty() && !options.load_on_demand) {
    return absl::InvalidArgumentError(
        "--pinned-models needs --load-on-demand true: without it all models stay loaded");
  }
  if (security.tls_certificate.empty() != security.tls_key.empty())
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together: give both");
  if (!security.tls_client_ca.empty() && security.tls_certificate.empty())
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  if (options.text.default_deadline > options.text.max_deadline) {
    return absl::InvalidArgumentError(
        absl::StrCat("--default-deadline is ", absl::FormatDuration(options.text.default_deadline),
                     ", --max-deadline is ", absl::FormatDuration(options.text.max_deadline),
                     ": lower the first or raise the second"));
  }
  if (options.max_batch_rows == 0) {
    options.max_batch_rows = options.device == "cuda" ? kCudaRows : kCpuRows;
  }
  options.text.DeriveFrom(options.admission.max_bytes);
  security.max_transport_bytes = options.admission.max_bytes;
  security.max_connection_age_grace = options.text.max_deadline;
  return absl::OkStatus();
}

}  // namespace linnet::server
