#include "server/config/settings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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

constexpr absl::string_view kExcept = "except=";

const CLI::Validator kLoadOnDemand(
    [](std::string& value) -> std::string {
      if (value == "true" || value == "false" ||
          (absl::StartsWith(value, kExcept) && value.size() > kExcept.size()))
        return "";
      return absl::StrCat("is \"", value, "\", it must be false, true or except=NAME,NAME");
    },
    "false|true|except=NAMES", "load on demand");

// Settings of earlier versions, with what replaces them.
struct RemovedSetting {
  absl::string_view name;
  absl::string_view instead;
};
constexpr RemovedSetting kRemovedSettings[] = {
    {"channelz", "the service channelz is gone: the log and the metrics page show connections"},
    {"default-deadline",
     "a call without a deadline has 300 seconds, or max-deadline if that is less"},
    {"encoder-cache-tokens",
     "it follows from max-batch-rows: 16384, at least 25 and at most 128 a row"},
    {"engine-load-timeout", "it is five times engine-stall-timeout"},
    {"graphs", "steps on a GPU are always recorded as CUDA graphs where the driver can do that"},
    {"keepalive", "it is a minute, or request-timeout if that is less"},
    {"max-encode-tokens", "it is always 4096"},
    {"max-idle", "it is max-connection-age"},
    {"max-metadata-bytes", "it is always 16384"},
    {"max-streams", "it is always 100: let clients and balancers open more connections"},
    {"overload-interval", "it is 2.5 times overload-max-queue-delay"},
    {"pinned-models", "set load-on-demand to except=NAME,NAME"},
    {"reflection", "it is always served: the API is public"},
    {"send-timeout", "it is request-timeout"},
    {"text-threads", "it follows from the number of cores"},
};

// Adds the settings of one group.
class Group {
 public:
  Group(CLI::App& app, const char* name) : app_(app), name_(name) {}

  template <typename Value>
  CLI::Option* Add(const char* name, Value& value, const char* meaning) {
    CLI::Option* option = app_.add_option(Flag(name), value, meaning)->group(name_);
    if constexpr (std::is_same_v<Value, bool>) option->default_str(value ? "true" : "false");
    return option;
  }
  template <typename Number>
  CLI::Option* AddNumber(const char* name, Number& value, const char* meaning,
                         std::type_identity_t<Number> min, std::type_identity_t<Number> max) {
    return Add(name, value, meaning)->check(CheckPlainNumber)->check(CLI::Range(min, max));
  }
  // One of some names.
  template <typename Value>
  CLI::Option* AddChoice(const char* name, Value& value, const char* meaning,
                         const std::vector<std::pair<std::string, Value>>& choices) {
    std::vector<std::string> names;
    std::string chosen;
    for (const auto& [known, meant] : choices) {
      names.push_back(known);
      if (meant == value) chosen = known;
    }
    const auto set = [&value, choices](const std::string& given) {
      for (const auto& [known, meant] : choices) {
        if (known == given) value = meant;
      }
    };
    return app_.add_option_function<std::string>(Flag(name), set, meaning)
        ->group(name_)
        ->default_str(chosen)
        ->check(CLI::IsMember(names));
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
  group.AddNumber(
      "max-model-bytes", options.max_model_bytes,
      "Max bytes of the files of all models in memory, including those that a reload replaces; "
      "with --load-on-demand, of the memory of their engines as measured when they are loaded; "
      "0: no limit",
      0, int64_t{1} << 50);
  app.add_option_function<std::string>(
         "--load-on-demand",
         [&options](const std::string& value) {
           absl::string_view names = value;
           options.load_on_demand = value != "false";
           options.pinned_models = absl::ConsumePrefix(&names, kExcept) ? std::string(names) : "";
         },
         "Load the engine of a model when it is first used, and unload the one that was used least "
         "recently, of those without calls, when --max-model-bytes is reached: false, true, or "
         "except=NAME,NAME for all but the models that are loaded at start and never unloaded")
      ->group("Models")
      ->default_str("false")
      ->check(kLoadOnDemand);
  group.Add(
      "allow-missing", options.allow_missing,
      "Start although some of the bundles in --models cannot be loaded, and serve the others; "
      "false: the start fails and names each of them with its cause");
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
  group.Add("tls-terminated-upstream", security.tls_terminated_upstream,
            "Accept tokens in plain text on any address, because a mesh or proxy terminates TLS "
            "before this server; anyone who can read the traffic between them gets the tokens");
  group
      .Add("trusted-proxies", security.trusted_proxies,
           "Addresses and networks of trusted proxies, separated by commas: their headers identify "
           "the client (the last entry of x-forwarded-for, and x-client-certificate-subject); from "
           "all other peers both headers are ignored")
      ->check(kProxies);
}

void AddConnections(CLI::App& app, SecurityOptions& security) {
  Group group(app, "Connections");
  group.AddNumber("max-connections", security.max_connections,
                  "Max open connections; further ones are closed at once; 0: no limit", 0, 1 << 20);
  group.AddNumber(
      "max-connections-per-address", security.max_connections_per_address,
      "Max open connections from one address, which may be a load balancer (for IPv6: from one "
      "/64 network); 0: no limit",
      0, 1 << 20);
  group.AddSeconds(
      "unauthenticated-timeout", security.unauthenticated_timeout,
      "Seconds after which a connection is closed if no call on it has been authenticated or, "
      "without --tokens, no complete request has arrived",
      0.1);
  group.AddNumber(
      "max-unauthenticated-bytes", security.max_unauthenticated_bytes,
      "Max bytes that all such connections may hold together; above it those that hold the "
      "most are closed, and all that have sent anything at twice the limit, counting memory "
      "that gRPC has not released yet; 0: no limit",
      0, int64_t{1} << 40);
  group.AddSeconds(
      "request-timeout", security.request_timeout,
      "Max seconds that a client may take to send its request, to read a message or to answer a "
      "ping (of these at most 60); then its call is cancelled, or its connection closed",
      0.1);
  group.AddSeconds(
      "max-connection-age", security.max_connection_age,
      "Seconds (plus or minus a tenth) after which a connection accepts no more calls, so that "
      "its client opens a new one, and without a call after which it is closed",
      1);
}

void AddEngine(CLI::App& app, Options& options) {
  Group group(app, "Engine");
  group.Add("device", options.device, "cpu or cuda");
  group.Add("compute", options.compute,
            "auto, float32, bfloat16, float16 or int8, if supported by the build and the device");
  group.Add("shortlist", options.shortlist,
            "auto, true or false: restrict searches to the tokens of a bundle's shortlist for a "
            "source, which is faster with a large vocabulary; auto where the bundle says so, but "
            "not on cuda, true in every bundle that has one");
  group.Add(
      "batch-invariant", options.batch_invariant,
      "Compute every step in one shape, so that an answer does not depend on what else is in "
      "the batch, on any device and in any type; every step then costs as much as a full one. "
      "Not needed for float32 and int8 on cpu");
  group.AddNumber("threads", options.threads,
                  "Threads inside a step of each engine; 0: one per core", 0, 1024);
  group.AddNumber(
      "max-batch-rows", options.max_batch_rows,
      "Max rows (hypotheses) of a step of each engine, and with them the size of its encoder KV "
      "cache; 0: 160 on cpu, 640 on cuda",
      0, 65536);
  group.AddSeconds(
      "engine-stall-timeout", options.engine_stall_timeout,
      "Seconds in one encoder call or step after which an engine counts as stalled: its calls "
      "fail, and the server exits with status 3, to be restarted; so it does if a load takes five "
      "times as long",
      0.1);
  group.AddFile(
      "failure-record", options.failure_record,
      "File of the request ids of calls that were running when an engine failed for good, kept "
      "across restarts: a call that is in it twice is logged as suspect_request; empty: no "
      "record");
}

void AddLimits(CLI::App& app, Options& options) {
  Group group(app, "Limits");
  group.AddNumber(
      "max-admitted-tokens", options.admission.max_tokens,
      "Max admitted work: (source + expected target tokens) x beam size, summed over segments", 1,
      int64_t{1} << 40);
  group.AddNumber(
      "max-request-memory", options.admission.max_bytes,
      "Max bytes of memory that all calls together hold, from the first byte of a request to "
      "the last of its reply. The limits of one call are derived from it: text of 1/256 of it, "
      "one segment per 16 KiB, and one line of a document in flight per 4 MiB",
      1 << 20, int64_t{1} << 40);
  group.AddSeconds(
      "overload-max-queue-delay", options.batcher.shed.max_wait,
      "Max seconds that a call waits, during an overload, until its first sequence runs; an "
      "overload is a queue that was not empty for 2.5 times as long");
  group.AddSeconds(
      "max-deadline", options.text.max_deadline,
      "Max seconds that any call may take, even with a later deadline; a call without one, and "
      "each line of a document, has at most 300",
      0.001);
  group.AddChoice<LanguageCheck>(
      "language-check", options.text.language_check,
      "Handling of a text that is reliably detected in another language than its model reads: "
      "warn answers it with a warning, refuse rejects it, off does not check",
      {{"off", LanguageCheck::kOff},
       {"warn", LanguageCheck::kWarn},
       {"refuse", LanguageCheck::kRefuse}});
  group.AddNumber(
      "answer-cache-bytes", options.answer_cache_bytes,
      "Max bytes of answers that are kept for identical sequences, which are also coalesced "
      "while they run: an engine whose answers depend on the batch is refused; 0: off",
      0, int64_t{1} << 40);
  group.AddChoice<CacheTenant>(
      "cache-tenant", options.cache_tenant,
      "Clients that share cached answers: token, those with the same token (without --tokens, "
      "the same address), or shared, all, so that a client can tell by the time of an answer "
      "whether another one has asked for it",
      {{"token", CacheTenant::kToken}, {"shared", CacheTenant::kShared}});
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

std::optional<std::string> RemovedSettingError(absl::string_view name) {
  for (const RemovedSetting& removed : kRemovedSettings) {
    if (removed.name == name)
      return absl::StrCat("the setting \"", name, "\" was removed: ", removed.instead);
  }
  return std::nullopt;
}

int64_t EncoderCacheTokens(int rows) {
  // All results of tests/bench were measured with 16384, which is 102 a row of a CPU and 26 of a
  // GPU. An engine of few rows has few sources at a time, and needs less.
  return std::clamp<int64_t>(16384, 25 * int64_t{rows}, 128 * int64_t{rows});
}

int TextThreads(int cores) { return std::clamp(cores / 8, 2, 16); }

absl::Status CompleteOptions(Options& options) {
  // On a GPU, where a step of many rows takes hardly longer: 128 sources with beam 5.
  constexpr int kCpuRows = 160, kCudaRows = 640;
  SecurityOptions& security = options.security;
  if (options.models.empty()) return absl::InvalidArgumentError("--models is required");
  if (security.tls_certificate.empty() != security.tls_key.empty())
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together: give both");
  if (!security.tls_client_ca.empty() && security.tls_certificate.empty())
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  if (options.max_batch_rows == 0) {
    options.max_batch_rows = options.device == "cuda" ? kCudaRows : kCpuRows;
  }
  options.text.DeriveFrom(options.admission.max_bytes);
  security.max_transport_bytes = options.admission.max_bytes;
  security.max_connection_age_grace = options.text.max_deadline;
  options.text.default_deadline =
      std::min(options.text.default_deadline, options.text.max_deadline);
  // Balancers of the large clouds forget an idle connection after four minutes or more.
  security.keepalive = std::min(absl::Minutes(1), security.request_timeout);
  options.engine_load_timeout = 5 * options.engine_stall_timeout;
  // tests/bench/server/overload.py measured 5 s with the default of 2 s.
  options.batcher.shed.interval = 2.5 * options.batcher.shed.max_wait;
  return absl::OkStatus();
}

}  // namespace linnet::server
