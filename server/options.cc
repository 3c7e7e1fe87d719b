#include "server/options.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/log.h"

namespace linnet::server {
namespace {

constexpr int kUsageError = 2;

const CLI::Validator kAddress(
    [](std::string& value) { return std::string(CheckAddress(value).message()); }, "HOST:PORT",
    "address");

}  // namespace

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

ParsedOptions ParseOptions(int argc, const char* const* argv) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  double drain_seconds = absl::ToDoubleSeconds(options.drain_timeout);
  double overload_seconds = absl::ToDoubleSeconds(options.batcher.shed.interval);
  double overload_wait_seconds = absl::ToDoubleSeconds(options.batcher.shed.most_wait);
  double patience_seconds = absl::ToDoubleSeconds(options.engine_patience);
  double lame_duck_seconds = absl::ToDoubleSeconds(options.lame_duck);
  std::string models;

  CLI::App app(
      "linnet-server: translates and summarises over gRPC (linnet.v1.TextService).\n"
      "Prints \"ready grpc=HOST:PORT metrics=HOST:PORT\" on standard output once it serves; logs "
      "go to standard error.\n"
      "SIGTERM and SIGINT drain it, a second one ends it at once.\n"
      "Exit status: 0 stopped when told to, 1 could not start, 2 bad flags, 3 stopped while "
      "an engine did not answer.",
      "linnet-server");
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", LINNET_VERSION);
  app.add_option("--models", models, "Folder of bundles, or one bundle; SIGHUP reads it again")
      ->required()
      ->option_text("DIR");
  app.add_option("--max-model-bytes", options.max_model_bytes,
                 "Bytes of the files of all models in memory at most, those that a reload replaces "
                 "among them; 0: any number")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50));
  app.add_option("--listen", options.listen, "Address of the gRPC service; port 0 picks a free one")
      ->check(kAddress);
  app.add_option("--metrics-listen", options.metrics_listen,
                 "Address of the Prometheus page; port 0 picks a free one")
      ->check(kAddress);
  app.add_option("--device", options.device, "cpu or cuda");
  app.add_option("--compute", options.compute,
                 "auto, float32, bfloat16, on CUDA float16, on the CPU int8");
  app.add_option("--threads", options.threads,
                 "Threads inside a step of each engine; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--rows", options.rows, "Hypotheses that a step of each engine holds at most")
      ->check(CLI::Range(1, 65536));
  app.add_option("--memory-tokens", options.memory_tokens,
                 "Source tokens that each engine holds at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  app.add_option("--max-encode-tokens", options.batcher.max_encode_tokens,
                 "Source tokens that are encoded between two steps at most")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--admit-wait-steps", options.batcher.admit.max_wait_steps,
                 "Steps that a newcomer waits at most for others to be encoded with")
      ->check(CLI::Range(0, 1000));
  app.add_option("--encode-call-steps", options.batcher.admit.encode_call_steps,
                 "What an encoder call costs beside its tokens, in decoder steps: the higher, the "
                 "longer newcomers wait for others")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--encode-call-tokens", options.batcher.admit.encode_call_tokens,
                 "The same in source tokens: the higher, the more padding a call may have")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--max-admitted-tokens", options.admission.max_tokens,
                 "Work in the house at most: (source + most target tokens) x beam size, summed "
                 "over segments")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--max-admitted-bytes", options.admission.max_bytes,
                 "Bytes of the requests in the house at most")
      ->check(CLI::Range(int64_t{8192}, int64_t{1} << 40));
  app.add_option("--max-call-rows-ratio", options.batcher.max_call_rows_ratio,
                 "Of the rows at most for one call, which for a document is all of its lines")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--overload-interval", overload_seconds,
                 "Seconds after which a line of waiting calls that never ends is an overload")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--overload-wait", overload_wait_seconds,
                 "Seconds that a call waits at most, in an overload, until something of it begins")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--max-contents", options.text.max_contents, "Texts in one call at most")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-text-bytes", options.text.max_text_bytes,
                 "Bytes of text in one call at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--text-threads", options.text_threads, "Threads that split and tokenise")
      ->check(CLI::Range(1, 256));
  app.add_option("--lame-duck", lame_duck_seconds,
                 "Seconds that the server goes on as before after SIGTERM, but for its health: "
                 "balancers need some to look elsewhere")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--drain-timeout", drain_seconds,
                 "Seconds that calls may take to end after SIGTERM and the lame duck")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--engine-patience", patience_seconds,
                 "Seconds in one encoder call or step after which an engine counts as stuck")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--log-level", options.log_level, "What is logged at least")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app.exit(error, out, err);
    parsed.text = status == 0 ? out.str() : err.str();
    parsed.exit_status = status == 0 ? 0 : kUsageError;
    return parsed;
  }
  options.models = models;
  options.lame_duck = absl::Seconds(lame_duck_seconds);
  options.drain_timeout = absl::Seconds(drain_seconds);
  options.engine_patience = absl::Seconds(patience_seconds);
  options.batcher.shed = {.interval = absl::Seconds(overload_seconds),
                          .most_wait = absl::Seconds(overload_wait_seconds)};
  parsed.run = true;
  return parsed;
}

void LogOptions(const Options& options) {
  Log(LogLevel::kInfo, "options",
      {{"models", options.models.string()},
       {"max_model_bytes", options.max_model_bytes},
       {"listen", options.listen},
       {"metrics_listen", options.metrics_listen},
       {"device", options.device},
       {"compute", options.compute},
       {"threads", options.threads},
       {"rows", options.rows},
       {"memory_tokens", options.memory_tokens},
       {"max_encode_tokens", options.batcher.max_encode_tokens},
       {"admit_wait_steps", options.batcher.admit.max_wait_steps},
       {"encode_call_steps", options.batcher.admit.encode_call_steps},
       {"encode_call_tokens", options.batcher.admit.encode_call_tokens},
       {"max_admitted_tokens", options.admission.max_tokens},
       {"max_admitted_bytes", options.admission.max_bytes},
       {"max_call_rows_ratio", options.batcher.max_call_rows_ratio},
       {"overload_interval", absl::FormatDuration(options.batcher.shed.interval)},
       {"overload_wait", absl::FormatDuration(options.batcher.shed.most_wait)},
       {"max_contents", options.text.max_contents},
       {"max_text_bytes", options.text.max_text_bytes},
       {"text_threads", options.text_threads},
       {"lame_duck", absl::FormatDuration(options.lame_duck)},
       {"drain_timeout", absl::FormatDuration(options.drain_timeout)},
       {"engine_patience", absl::FormatDuration(options.engine_patience)},
       {"log_level", options.log_level}});
}

}  // namespace linnet::server
