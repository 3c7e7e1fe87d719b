#include "server/config/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"
#include "server/identity/trusted_proxies.h"

namespace linnet::server {
namespace {

constexpr int kUsageError = 2;
constexpr char kPrefix[] = "LINNET_SERVER_";

const CLI::Validator kAddress(
    [](std::string& value) { return std::string(CheckAddress(value).message()); }, "HOST:PORT",
    "address");

const CLI::Validator kProxies(
    [](std::string& value) { return std::string(TrustedProxies::Parse(value).status().message()); },
    "ADDRESSES", "proxies");

// True for settings of the server, false for flags such as --help.
bool IsSetting(const CLI::Option& option) {
  const std::string name = option.get_single_name();
  return name != "help" && name != "version" && name != "config" && name != "print-config";
}

// Declares and parses all settings, in the order of --help. Durations are given in seconds.
class Parser {
 public:
  Parser();

  ParsedOptions Parse(int argc, const char* const* argv,
                      const std::vector<std::string>& environment);

 private:
  template <typename Value>
  CLI::Option* Add(const std::string& name, Value& value, const std::string& meaning) {
    return app_.add_option("--" + name, value, meaning)->group(group_);
  }
  CLI::Option* AddSeconds(const std::string& name, absl::Duration& duration,
                          const std::string& meaning, double min = 0) {
    seconds_.push_back(std::make_unique<std::pair<double, absl::Duration*>>(
        absl::ToDoubleSeconds(duration), &duration));
    return Add(name, seconds_.back()->first, meaning)->check(CLI::Range(min, 86400.0));
  }
  void AddModels();
  void AddNetwork();
  void AddEngine();
  void AddLimits();
  void AddLifecycle();

  absl::Status AddFile(const std::string& path, std::vector<std::string>& arguments) const;
  std::vector<Setting> Settings() const;
  ParsedOptions Text(std::string text, int exit_status) const;

  CLI::App app_;
  Options options_;
  std::string group_;
  std::string models_;
  std::string bundle_keys_;
  std::string failure_record_;
  std::string language_check_ = "warn";
  std::string config_;
  bool print_ = false;
  std::vector<std::unique_ptr<std::pair<double, absl::Duration*>>> seconds_;
};

Parser::Parser()
    : app_(
          "linnet-server: serves translation and summarisation over gRPC (linnet.v1.TextService).\n"
          "Prints \"ready grpc=HOST:PORT metrics=HOST:PORT\" on standard output when it is ready; "
          "logs go to standard error.\n"
          "Signals: SIGTERM and SIGINT drain the server, a second one ends it at once; SIGHUP "
          "reloads the models; SIGUSR1 logs everything, SIGUSR2 restores --log-level.\n"
          "Each flag --some-name can also be set as LINNET_SERVER_SOME_NAME in the environment "
          "and as some-name = VALUE in a file; flags override the environment, which overrides "
          "the file.\n"
          "Exit status: 0 stopped by a signal, 1 failed to start, 2 bad flags, 3 an engine "
          "stalled, lost its device or could not be restarted: start the server again.",
          "linnet-server") {
  app_.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app_.set_version_flag("--version", "linnet-server " LINNET_VERSION);
  app_.add_option("--config", config_, "File of settings")->option_text("FILE");
  app_.add_flag("--print-config", print_,
                "Print the settings in effect in the format of that file, and exit");
  AddModels();
  AddNetwork();
  AddEngine();
  AddLimits();
  AddLifecycle();
}

void Parser::AddModels() {
  group_ = "Models";
  Add("models", models_, "Folder of bundles, or one bundle; SIGHUP reloads it")->option_text("DIR");
  Add("bundle-key", bundle_keys_,
      "File of Ed25519 public keys in PEM, read at every load: a bundle is loaded only if its "
      "manifest.json.sig verifies with one of them; empty: no signature is required")
      ->option_text("FILE");
  Add("max-model-bytes", options_.max_model_bytes,
      "Max bytes of the files of all models in memory, including those that a reload replaces; "
      "0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50));
}

void Parser::AddNetwork() {
  group_ = "Network and security";
  SecurityOptions& security = options_.security;
  Add("listen", options_.listen, "Address of the gRPC service; port 0 picks a free port")
      ->check(kAddress);
  Add("metrics-listen", options_.metrics_listen,
      "Address of the Prometheus metrics page; port 0 picks a free port")
      ->check(kAddress);
  Add("admin-listen", options_.admin_listen,
      "Address of linnet.v1.AdminService: reloads, the batch, the log level; empty: with "
      "--tokens it is served on --listen for tokens with the right admin, otherwise not at "
      "all. An address that other machines can reach requires --tokens; port 0 picks a free "
      "port")
      ->check(kAddress);
  Add("tls-cert", security.tls_certificate,
      "Certificate of the server in PEM, reloaded when it changes; empty: no encryption");
  Add("tls-key", security.tls_key, "Private key of --tls-cert");
  Add("tls-client-ca", security.tls_client_ca,
      "CA certificates in PEM; clients must present a certificate that one of them signed");
  Add("tokens", security.tokens,
      "File of bearer tokens, one per line: TOKEN NAME RIGHTS, where rights are inference, "
      "admin or both with a comma, optionally followed by max-priority=batch, normal or "
      "interactive; a token has at least 16 characters; reloaded when it changes. Requires TLS "
      "or a loopback address");
  Add("tls-terminated-upstream", security.tls_terminated_upstream,
      "Accept tokens in plain text on any address, because a mesh or proxy terminates TLS "
      "before this server; anyone who can read the traffic between them gets the tokens")
      ->default_str("false");
  Add("trusted-proxies", security.trusted_proxies,
      "Addresses and networks of trusted proxies, separated by commas: their headers identify "
      "the client (the last entry of x-forwarded-for, and x-client-certificate-subject); from "
      "all other peers both headers are ignored")
      ->check(kProxies);
  Add("reflection", security.reflection, "Serve gRPC reflection, which shows the (public) API")
      ->default_str("true");
  Add("channelz", security.channelz,
      "Serve gRPC channelz, which shows gRPC's internal state with the addresses of all peers")
      ->default_str("false");
  Add("max-metadata-bytes", security.max_metadata_bytes, "Max bytes of the headers of a call")
      ->check(CLI::Range(1024, 1 << 24));
  Add("max-connections", security.max_connections,
      "Max open connections; further ones are closed at once; 0: no limit")
      ->check(CLI::Range(0, 1 << 20));
  Add("max-connections-per-address", security.max_connections_per_address,
      "Max open connections from one address, which may be a load balancer; 0: no limit")
      ->check(CLI::Range(0, 1 << 20));
  AddSeconds("handshake-timeout", security.handshake_timeout,
             "Max seconds that a new connection may take for TLS and the start of HTTP/2", 0.1);
  AddSeconds(
      "unauthenticated-timeout", security.unauthenticated_timeout,
      "Seconds after which a connection is closed if no call on it has been authenticated or, "
      "without --tokens, no complete request has arrived",
      0.1);
  Add("max-unauthenticated-bytes", security.max_unauthenticated_bytes,
      "Max bytes that all such connections may hold together; above it those that hold the "
      "most are closed, and all that have sent anything at twice the limit, counting memory "
      "that gRPC has not released yet; 0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  Add("max-transport-bytes", security.max_transport_bytes,
      "Quota of gRPC's own buffers in bytes; above it gRPC cancels calls")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
  AddSeconds("request-timeout", security.request_timeout,
             "Max seconds that a client may take to send its request; then its call is cancelled",
             0.1);
  AddSeconds("send-timeout", security.send_timeout,
             "Max seconds that a client may take to read a message; then its call is cancelled",
             0.1);
  Add("max-streams", security.max_streams, "Max concurrent calls on one connection")
      ->check(CLI::Range(1, 1 << 20));
  AddSeconds("max-idle", security.max_idle,
             "Seconds without a call after which a connection is closed", 1);
  AddSeconds(
      "max-connection-age", security.max_connection_age,
      "Seconds (plus or minus a tenth) after which a connection accepts no more calls, so that "
      "its client opens a new one",
      1);
  AddSeconds("max-connection-age-grace", security.max_connection_age_grace,
             "Max seconds for the remaining calls of such a connection; then it is closed", 1);
  AddSeconds("keepalive", security.keepalive,
             "Seconds without traffic after which a client is pinged", 1);
}

void Parser::AddEngine() {
  group_ = "Engine";
  Add("device", options_.device, "cpu or cuda");
  Add("compute", options_.compute,
      "auto, float32, bfloat16, float16 or int8, if supported by the build and the device");
  Add("search", options_.search,
      "Where to run the search: host, device (beside the model), or auto, which is device on "
      "cuda");
  Add("graphs", options_.graphs,
      "Launch each step on the device as a CUDA graph, captured when a model is loaded")
      ->default_str("true");
  Add("shortlist", options_.shortlist,
      "Restrict searches to the tokens of a bundle's shortlist for a source: faster with a "
      "large vocabulary; every bundle must have one")
      ->default_str("false");
  Add("threads", options_.threads, "Threads inside a step of each engine; 0: one per core")
      ->check(CLI::Range(0, 1024));
  Add("max-batch-rows", options_.max_batch_rows, "Max rows (hypotheses) of a step of each engine")
      ->check(CLI::Range(1, 65536));
  Add("encoder-cache-tokens", options_.encoder_cache_tokens,
      "Source tokens in the encoder KV cache of each engine")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  AddSeconds(
      "engine-stall-timeout", options_.engine_stall_timeout,
      "Seconds in one encoder call or step after which an engine counts as stalled: its calls "
      "fail, and the server exits with status 3, to be restarted",
      0.1);
  AddSeconds("engine-load-timeout", options_.engine_load_timeout,
             "Max seconds to create an engine, at start, in a reload and after a failure; then the "
             "server exits with status 3",
             0.1);
  Add("failure-record", failure_record_,
      "File of the request ids of calls that were running when an engine failed for good, kept "
      "across restarts: a call that is in it twice is logged as suspect_request; empty: no "
      "record")
      ->option_text("FILE");
  Add("max-encode-tokens", options_.batcher.max_encode_tokens,
      "Max source tokens encoded between two steps")
      ->check(CLI::Range(1, 1 << 24));
  Add("max-encode-delay-steps", options_.batcher.admit.max_wait_steps,
      "Max steps that a waiting sequence is delayed so that more can be encoded together")
      ->check(CLI::Range(0, 1000));
  Add("encode-call-steps", options_.batcher.admit.encode_call_steps,
      "Fixed cost of an encoder call in decoder steps: the higher, the longer waiting "
      "sequences are delayed to be encoded together")
      ->check(CLI::Range(0.0, 1000.0));
  Add("encode-call-tokens", options_.batcher.admit.encode_call_tokens,
      "Fixed cost of an encoder call in source tokens: the higher, the more padding a call may "
      "have")
      ->check(CLI::Range(0, 1 << 24));
}

void Parser::AddLimits() {
  group_ = "Limits";
  Add("max-admitted-tokens", options_.admission.max_tokens,
      "Max admitted work: (source + max target tokens) x beam size, summed over segments")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  Add("max-request-memory", options_.admission.max_bytes,
      "Max bytes of memory that all calls together hold, from the first byte of a request to "
      "the last of its reply. The limits of one call are derived from it: text of 1/256 of it, "
      "one segment per 16 KiB, and one line of a document in flight per 4 MiB")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
  Add("max-call-rows-ratio", options_.batcher.max_call_rows_ratio,
      "Max share of the rows for one call; all lines of a document are one call")
      ->check(CLI::Range(0.0, 1.0));
  AddSeconds("overload-interval", options_.batcher.shed.interval,
             "Seconds without an empty queue after which the server counts as overloaded");
  AddSeconds("overload-max-queue-delay", options_.batcher.shed.max_wait,
             "Max seconds that a call waits, during an overload, until its first sequence runs");
  AddSeconds("default-deadline", options_.text.default_deadline,
             "Deadline, in seconds, of a call without one, and of each line of a document", 0.001);
  AddSeconds("max-deadline", options_.text.max_deadline,
             "Max seconds that any call may take, even with a later deadline", 0.001);
  Add("language-check", language_check_,
      "Handling of a text that is reliably detected in another language than its model reads: "
      "warn answers it with a warning, refuse rejects it, off does not check")
      ->check(CLI::IsMember({"off", "warn", "refuse"}));
  Add("text-threads", options_.text_threads, "Threads that split and tokenise")
      ->check(CLI::Range(1, 256));
}

void Parser::AddLifecycle() {
  group_ = "Lifecycle and logs";
  AddSeconds("lame-duck", options_.lame_duck,
             "Seconds after SIGTERM in which the server still accepts calls while its health is "
             "NOT_SERVING, so that load balancers can switch");
  AddSeconds("drain-timeout", options_.drain_timeout,
             "Max seconds for calls in flight after SIGTERM and the lame duck");
  Add("log-level", options_.log_level, "Min level of logged events")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  Add("log-format", options_.log_format, "Format of log lines: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  AddSeconds("slow-call", options_.slow_call,
             "Seconds after which a call is logged with the duration of its phases; 0: never");
}

absl::Status Parser::AddFile(const std::string& path, std::vector<std::string>& arguments) const {
  std::ifstream stream(path);
  if (!stream) return absl::NotFoundError(absl::StrCat("--config: cannot read ", path));
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigBase().from_config(stream);
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
  for (const CLI::ConfigItem& item : items) {
    const CLI::Option* option = app_.get_option_no_throw("--" + item.name);
    if (!item.parents.empty() || option == nullptr || !IsSetting(*option)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": there is no setting \"",
                                                     item.fullname(),
                                                     "\"; --print-config prints all of them"));
    }
    if (item.inputs.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": ", item.name, " has ", item.inputs.size(), " values: give exactly one"));
    }
    // CLI11 would take the next argument as the value of "--name=".
    if (item.inputs.front().empty()) continue;
    arguments.push_back(absl::StrCat("--", item.name, "=", item.inputs.front()));
  }
  return absl::OkStatus();
}

std::vector<Setting> Parser::Settings() const {
  std::vector<Setting> settings;
  for (const CLI::Option* option : app_.get_options()) {
    if (!IsSetting(*option)) continue;
    settings.push_back({option->get_group(), option->get_single_name(),
                        option->count() > 0 ? option->as<std::string>() : option->get_default_str(),
                        option->get_default_str(), option->get_description()});
  }
  return settings;
}

ParsedOptions Parser::Text(std::string text, int exit_status) const {
  ParsedOptions parsed;
  parsed.text = std::move(text);
  parsed.exit_status = exit_status;
  return parsed;
}

ParsedOptions Parser::Parse(int argc, const char* const* argv,
                            const std::vector<std::string>& environment) {
  std::vector<std::string> from_environment;
  for (const std::string& variable : environment) {
    absl::string_view rest = variable;
    if (!absl::ConsumePrefix(&rest, kPrefix)) continue;
    const size_t equals = rest.find('=');
    const std::string name =
        absl::StrReplaceAll(absl::AsciiStrToLower(rest.substr(0, equals)), {{"_", "-"}});
    const std::string value(equals == absl::string_view::npos ? "" : rest.substr(equals + 1));
    const CLI::Option* option = app_.get_option_no_throw("--" + name);
    if (option == nullptr || (!IsSetting(*option) && name != "config")) {
      return Text(absl::StrCat("linnet-server: the environment has ",
                               variable.substr(0, variable.find('=')),
                               ", but there is no setting \"", name, "\"\n"),
                  kUsageError);
    }
    if (name == "config") {
      config_ = value;
    } else if (!value.empty()) {
      from_environment.push_back(absl::StrCat("--", name, "=", value));
    }
  }
  for (int i = 1; i < argc; ++i) {  // the file is read first, wherever the flag is
    absl::string_view flag = argv[i];
    if (flag == "--config" && i + 1 < argc) config_ = argv[i + 1];
    if (absl::ConsumePrefix(&flag, "--config=")) config_ = std::string(flag);
  }
  std::vector<std::string> arguments;
  if (!config_.empty()) {
    if (absl::Status status = AddFile(config_, arguments); !status.ok())
      return Text(absl::StrCat("linnet-server: ", status.message(), "\n"), kUsageError);
  }
  // The last value of a setting wins.
  arguments.insert(arguments.end(), from_environment.begin(), from_environment.end());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects a vector in reverse order
  try {
    app_.parse(arguments);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app_.exit(error, out, err);
    return Text(status == 0 ? out.str() : err.str(), status == 0 ? 0 : kUsageError);
  }
  if (print_) {
    std::string text;
    std::string group;
    for (const Setting& setting : Settings()) {
      if (group != setting.group)
        absl::StrAppend(&text, group.empty() ? "" : "\n", "# ", setting.group, "\n");
      group = setting.group;
      absl::StrAppend(&text, setting.name, " = \"", setting.value, "\"\n");
    }
    return Text(std::move(text), 0);
  }
  if (models_.empty())
    return Text("--models is required\nRun with --help for more information.\n", kUsageError);
  if (options_.security.tls_certificate.empty() != options_.security.tls_key.empty())
    return Text("--tls-cert and --tls-key belong together: give both\n", kUsageError);
  if (!options_.security.tls_client_ca.empty() && options_.security.tls_certificate.empty())
    return Text("--tls-client-ca needs --tls-cert and --tls-key\n", kUsageError);
  for (const auto& one : seconds_) *one->second = absl::Seconds(one->first);
  if (options_.text.default_deadline > options_.text.max_deadline) {
    return Text(
        absl::StrCat("--default-deadline is ", absl::FormatDuration(options_.text.default_deadline),
                     ", --max-deadline is ", absl::FormatDuration(options_.text.max_deadline),
                     ": lower the first or raise the second\n"),
        kUsageError);
  }
  options_.text.DeriveFrom(options_.admission.max_bytes);
  options_.models = models_;
  options_.bundle_keys = bundle_keys_;
  options_.failure_record = failure_record_;
  options_.text.language_check = language_check_ == "off"      ? LanguageCheck::kOff
                                 : language_check_ == "refuse" ? LanguageCheck::kRefuse
                                                               : LanguageCheck::kWarn;
  ParsedOptions parsed = Text("", 0);
  parsed.options = options_;
  parsed.settings = Settings();
  parsed.run = true;
  return parsed;
}

}  // namespace

std::string Setting::environment() const {
  return absl::StrCat(kPrefix, absl::StrReplaceAll(absl::AsciiStrToUpper(name), {{"-", "_"}}));
}

ParsedOptions ParseOptions(int argc, const char* const* argv,
                           const std::vector<std::string>& environment) {
  return Parser().Parse(argc, argv, environment);
}

std::vector<std::string> ProcessEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  const absl::string_view host =
      address.substr(0, colon == absl::string_view::npos ? address.size() : colon);
  const bool bare_ipv6 = host.find(':') != absl::string_view::npos && host.front() != '[';
  if (colon == absl::string_view::npos || host.empty() || bare_ipv6 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address,
                     "\" is not HOST:PORT with a port of 0 to 65535, such as "
                     "127.0.0.1:50051 or [::1]:0"));
  }
  return absl::OkStatus();
}

std::string WithPort(absl::string_view address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

void LogSettings(const std::vector<Setting>& settings) {
  std::vector<LogField> fields;
  for (const Setting& setting : settings) fields.emplace_back(setting.name, setting.value);
  Log(LogLevel::kInfo, "options", fields);
}

}  // namespace linnet::server
