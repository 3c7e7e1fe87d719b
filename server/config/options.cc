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

// Options that say something else than how the server is to be.
bool IsSetting(const CLI::Option& option) {
  const std::string name = option.get_single_name();
  return name != "help" && name != "version" && name != "config" && name != "print-config";
}

// All settings, in the order of --help. Durations are seconds on the outside.
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
    return Add(name, seconds_.back()->first, "Seconds " + meaning)->check(CLI::Range(min, 86400.0));
  }
  void AddModels();
  void AddNetwork();
  void AddEngine();
  void AddLimits();
  void AddLife();

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
          "linnet-server: translates and summarises over gRPC (linnet.v1.TextService).\n"
          "Prints \"ready grpc=HOST:PORT metrics=HOST:PORT\" on standard output once it serves; "
          "logs go to standard error.\n"
          "SIGTERM and SIGINT drain it, a second one ends it at once; SIGHUP reads the models "
          "again; SIGUSR1 logs all there is, SIGUSR2 what --log-level says.\n"
          "Each flag --some-name can be given as LINNET_SERVER_SOME_NAME in the environment and "
          "as some-name = VALUE in a file as well; a flag goes before the environment, that "
          "before the file.\n"
          "Exit status: 0 stopped when told to, 1 could not start, 2 bad flags, 3 an engine "
          "stalled, lost its device or could not be made again: start the server again.",
          "linnet-server") {
  app_.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app_.set_version_flag("--version", "linnet-server " LINNET_VERSION);
  app_.add_option("--config", config_, "File of settings")->option_text("FILE");
  app_.add_flag("--print-config", print_, "Print the settings in effect as such a file, and leave");
  AddModels();
  AddNetwork();
  AddEngine();
  AddLimits();
  AddLife();
}

void Parser::AddModels() {
  group_ = "Models";
  Add("models", models_, "Folder of bundles, or one bundle; SIGHUP reads it again")
      ->option_text("DIR");
  Add("bundle-key", bundle_keys_,
      "File of public keys, PEM, Ed25519, read at every load: a bundle must have a "
      "manifest.json.sig "
      "by one of them, or it is not loaded; without one none is needed")
      ->option_text("FILE");
  Add("max-model-bytes", options_.max_model_bytes,
      "Bytes of the files of all models in memory at most, those that a reload replaces among "
      "them; 0: any number")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50));
}

void Parser::AddNetwork() {
  group_ = "Network and security";
  SecurityOptions& security = options_.security;
  Add("listen", options_.listen, "Address of the gRPC service; port 0 picks a free one")
      ->check(kAddress);
  Add("metrics-listen", options_.metrics_listen,
      "Address of the Prometheus page; port 0 picks a free one")
      ->check(kAddress);
  Add("admin-listen", options_.admin_listen,
      "Address of linnet.v1.AdminService: reloads, what is in the batch, the log level; without "
      "one "
      "it is served on --listen where there are --tokens, for those with the right admin, and "
      "nowhere else. Needs --tokens where other machines reach it; port 0 picks a free one")
      ->check(kAddress);
  Add("tls-cert", security.tls_certificate,
      "Certificate of the server, PEM, read again when it changes; without one nothing is "
      "encrypted");
  Add("tls-key", security.tls_key, "Its key");
  Add("tls-client-ca", security.tls_client_ca,
      "Certificates, PEM, one of which must have signed that of a client");
  Add("tokens", security.tokens,
      "File of bearer tokens, a line each: TOKEN NAME RIGHTS, where rights are inference, admin or "
      "both with a comma, and may be followed by max-priority=batch, normal or interactive; a "
      "token has at least 16 characters; read again when it changes. Needs TLS, or an address of "
      "this machine");
  Add("tls-terminated-upstream", security.tls_terminated_upstream,
      "Whether a mesh or proxy ends TLS before this server, so that tokens are taken in plain text "
      "on any address: whoever can read the traffic between them has the tokens")
      ->default_str("false");
  Add("trusted-proxies", security.trusted_proxies,
      "Addresses and networks of proxies, with commas, whose headers say who calls: the last entry "
      "of x-forwarded-for, and x-client-certificate-subject; from anybody else both are ignored")
      ->check(kProxies);
  Add("reflection", security.reflection,
      "Whether clients can ask for the API, which is public anyhow")
      ->default_str("true");
  Add("channelz", security.channelz, "Whether gRPC's own state, with every peer, can be looked at")
      ->default_str("false");
  Add("max-metadata-bytes", security.max_metadata_bytes, "Bytes of the headers of a call at most")
      ->check(CLI::Range(1024, 1 << 24));
  Add("max-connections", security.max_connections,
      "Connections at once at most; what is beyond is closed at once; 0: any number")
      ->check(CLI::Range(0, 1 << 20));
  Add("max-connections-per-address", security.max_connections_per_address,
      "Of them from one address at most, which may be that of a balancer; 0: any number")
      ->check(CLI::Range(0, 1 << 20));
  AddSeconds("handshake-timeout", security.handshake_timeout,
             "that a new connection may take for TLS and the start of HTTP/2", 0.1);
  AddSeconds(
      "unauthenticated-timeout", security.unauthenticated_timeout,
      "after which a connection is closed on which no call has been authenticated or, without "
      "--tokens, on which no request has come as a whole",
      0.1);
  Add("max-unauthenticated-bytes", security.max_unauthenticated_bytes,
      "Bytes that such connections may hold together; beyond it those that hold most are closed, "
      "and all that have sent anything at twice as much with what is not given back yet; 0: any "
      "number")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  Add("max-transport-bytes", security.max_transport_bytes,
      "The quota of gRPC's own buffers in bytes; beyond it gRPC cancels calls")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
  AddSeconds("request-timeout", security.request_timeout,
             "that a client may take to send its request; then its call is cancelled", 0.1);
  AddSeconds("send-timeout", security.read_timeout,
             "that a client may take to read a message; then its call is cancelled", 0.1);
  Add("max-streams", security.max_streams, "Calls at once on one connection at most")
      ->check(CLI::Range(1, 1 << 20));
  AddSeconds("max-idle", security.max_idle, "without a call after which a connection is closed", 1);
  AddSeconds("max-connection-age", security.max_connection_age,
             "after which a connection takes no more calls, give or take a tenth: its client makes "
             "a new one",
             1);
  AddSeconds("max-connection-age-grace", security.max_connection_age_grace,
             "that the calls of such a connection may still take; then it is closed", 1);
  AddSeconds("keepalive", security.keepalive,
             "of silence after which a client is asked whether it is still there", 1);
}

void Parser::AddEngine() {
  group_ = "Engine";
  Add("device", options_.device, "cpu or cuda");
  Add("compute", options_.compute,
      "auto, float32, bfloat16, float16 or int8, as far as built for the device");
  Add("search", options_.search,
      "Where targets are searched: on the host, on the device beside the model, or auto, which is "
      "the device on cuda");
  Add("graphs", options_.graphs,
      "Whether a step of the device is launched as a CUDA graph, recorded when a model is loaded")
      ->default_str("true");
  Add("shortlist", options_.shortlist,
      "Searches look only at the tokens that a bundle's shortlist gives for a source: faster where "
      "the vocabulary is large, and every bundle must have one")
      ->default_str("false");
  Add("threads", options_.threads, "Threads inside a step of each engine; 0: one per core")
      ->check(CLI::Range(0, 1024));
  Add("max-batch-rows", options_.rows, "Hypotheses that a step of each engine holds at most")
      ->check(CLI::Range(1, 65536));
  Add("encoder-cache-tokens", options_.encoder_cache_tokens,
      "Source tokens that each engine holds at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  AddSeconds("engine-stall-timeout", options_.engine_stall_timeout,
             "in one encoder call or step after which an engine has stalled: its calls get their "
             "errors, and the server ends with status 3, to be started again",
             0.1);
  AddSeconds("engine-load-timeout", options_.engine_load_timeout,
             "that the making of an engine may take, at start, in a reload and after a failure; "
             "beyond that the server ends with status 3",
             0.1);
  Add("failure-record", failure_record_,
      "File of the request ids of calls that engines failed over for good, kept from one start to "
      "the next: a call that is in it twice is logged as suspect_request; without one none is")
      ->option_text("FILE");
  Add("max-encode-tokens", options_.batcher.max_encode_tokens,
      "Source tokens that are encoded between two steps at most")
      ->check(CLI::Range(1, 1 << 24));
  Add("max-encode-delay-steps", options_.batcher.admit.max_wait_steps,
      "Steps that a newcomer waits at most for others to be encoded with")
      ->check(CLI::Range(0, 1000));
  Add("encode-call-steps", options_.batcher.admit.encode_call_steps,
      "What an encoder call costs beside its tokens, in decoder steps: the higher, the longer "
      "newcomers wait for others")
      ->check(CLI::Range(0.0, 1000.0));
  Add("encode-call-tokens", options_.batcher.admit.encode_call_tokens,
      "The same in source tokens: the higher, the more padding a call may have")
      ->check(CLI::Range(0, 1 << 24));
}

void Parser::AddLimits() {
  group_ = "Limits";
  Add("max-admitted-tokens", options_.admission.max_tokens,
      "Work in the house at most: (source + most target tokens) x beam size, summed over segments")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  Add("max-request-memory", options_.admission.max_bytes,
      "Bytes of memory at most that all calls together hold, from the first byte of a request to "
      "the last of its reply. What one call may bring follows from it: text of a 256th, a segment "
      "for each 16 KiB, and a line of a document at once for each 4 MiB")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
  Add("max-call-rows-ratio", options_.batcher.max_call_rows_ratio,
      "Of the rows at most for one call, which for a document is all of its lines")
      ->check(CLI::Range(0.0, 1.0));
  AddSeconds("overload-interval", options_.batcher.shed.interval,
             "after which a line of waiting calls that never ends is an overload");
  AddSeconds("overload-max-queue-delay", options_.batcher.shed.max_wait,
             "that a call waits at most, in an overload, until something of it begins");
  AddSeconds("default-deadline", options_.text.default_deadline,
             "that a call without a deadline may take, and each line of a document", 0.001);
  AddSeconds("max-deadline", options_.text.max_deadline,
             "that any call may take at most, whatever its deadline", 0.001);
  Add("language-check", language_check_,
      "What becomes of a text that is surely in another language than its model reads: warn "
      "answers it with a warning, refuse does not, off does not look")
      ->check(CLI::IsMember({"off", "warn", "refuse"}));
  Add("text-threads", options_.text_threads, "Threads that split and tokenise")
      ->check(CLI::Range(1, 256));
}

void Parser::AddLife() {
  group_ = "Life and logs";
  AddSeconds("lame-duck", options_.lame_duck,
             "that the server goes on as before after SIGTERM, but for its health: balancers need "
             "some to look elsewhere");
  AddSeconds("drain-timeout", options_.drain_timeout,
             "that calls may take to end after SIGTERM and the lame duck");
  Add("log-level", options_.log_level, "What is logged at least")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  Add("log-format", options_.log_format, "Lines of text, or of JSON")
      ->check(CLI::IsMember({"text", "json"}));
  AddSeconds("slow-call", options_.slow_call,
             "that a call may take before a line of the log says what took so long; 0: never");
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
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", item.name, " has ", item.inputs.size(), " values: give one"));
    }
    // CLI11 would take the next argument for the value of "--name=".
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
                               ", and there is no setting \"", name, "\"\n"),
                  kUsageError);
    }
    if (name == "config") {
      config_ = value;
    } else if (!value.empty()) {
      from_environment.push_back(absl::StrCat("--", name, "=", value));
    }
  }
  for (int i = 1; i < argc; ++i) {  // wherever it stands, the file comes first
    absl::string_view flag = argv[i];
    if (flag == "--config" && i + 1 < argc) config_ = argv[i + 1];
    if (absl::ConsumePrefix(&flag, "--config=")) config_ = std::string(flag);
  }
  std::vector<std::string> arguments;
  if (!config_.empty()) {
    if (absl::Status status = AddFile(config_, arguments); !status.ok())
      return Text(absl::StrCat("linnet-server: ", status.message(), "\n"), kUsageError);
  }
  // The last one counts.
  arguments.insert(arguments.end(), from_environment.begin(), from_environment.end());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
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
  options_.text.FollowFrom(options_.admission.max_bytes);
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
                     "\" is no HOST:PORT with a port of 0 to 65535, such as "
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
