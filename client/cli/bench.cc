#include "client/cli/bench.h"

#include <cerrno>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/run/run.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

const std::vector<std::string>& OurTexts() {
  static const auto& texts = *new std::vector<std::string>{
      "A dog runs across the road.",
      "Where is the station?",
      "She has two children, and she loves music.",
      "The weather will be fine tomorrow, but it may rain in the evening.",
      "Please send me the report before Friday.",
      "He did not know what to say when they asked him why he had come so late.",
      "Thank you very much!",
      "The old bridge over the river was built by hand more than two hundred years ago.",
  };
  return texts;
}

template <typename Response>
CallOutcome MakeOutcome(const absl::StatusOr<Response>& response, const v1::TokenUsage* usage) {
  CallOutcome outcome;
  outcome.status = response.status();
  if (usage == nullptr) return outcome;
  outcome.texts = 1;
  outcome.source_tokens = usage->source_tokens();
  outcome.target_tokens = usage->target_tokens();
  return outcome;
}

std::string Milliseconds(absl::Duration duration) {
  return absl::StrFormat("%8.1f ms", absl::ToDoubleMilliseconds(duration));
}

// Runs one part and writes its line, or returns the first error.
absl::Status Measure(const MakeCall& call, int callers, absl::Duration duration,
                     const Environment& environment) {
  LoadPlan plan;
  plan.open = false;
  plan.callers = callers;
  plan.duration = duration;
  ASSIGN_OR_RETURN(const LoadResult result, RunLoad(plan, call, environment.stop));
  for (const auto& [code, record] : result.record.by_status()) {
    if (code != absl::StatusCode::kOk) return absl::Status(code, record.first_message);
  }
  if (result.stopped) return absl::CancelledError("cancelled");
  const auto answered = result.record.by_status().find(absl::StatusCode::kOk);
  if (answered == result.record.by_status().end()) {
    return absl::DeadlineExceededError("no call was answered within the duration: allow more");
  }
  const LatencyHistogram& latency = answered->second.from_sent;
  const double seconds = absl::ToDoubleSeconds(result.record.window());
  environment.out << absl::StrFormat(
      "%-7d %9.1f %s %s %s %s %11.0f\n", callers, result.record.answered_in_window() / seconds,
      Milliseconds(latency.Percentile(50)), Milliseconds(latency.Percentile(95)),
      Milliseconds(latency.Percentile(99)), Milliseconds(latency.max()),
      result.record.target_tokens() / seconds);
  environment.out.flush();
  return absl::OkStatus();
}

}  // namespace

int Bench(Client& client, const BenchOptions& options, const Environment& environment) {
  const std::vector<std::string>& texts = options.texts.empty() ? OurTexts() : options.texts;
  v1::TranslateRequest translate;
  translate.set_source_language_code(options.from);
  translate.set_target_language_code(options.to);
  translate.set_model(options.model);
  v1::SummarizeRequest summarize;
  summarize.set_language_code(options.from);
  summarize.set_model(options.model);
  const absl::Status language =
      options.to.empty() ? SetLanguage(client, {}, summarize) : SetLanguage(client, {}, translate);
  if (!language.ok()) return Fail(language, "", environment);

  const MakeCall call = [&](int64_t index, int) {
    const std::string& text = texts[index % texts.size()];
    if (options.to.empty()) {
      v1::SummarizeRequest request = summarize;
      request.add_contents(text);
      const auto response = client.Summarize(request);
      return MakeOutcome(response, response.ok() ? &response->summaries(0).usage() : nullptr);
    }
    v1::TranslateRequest request = translate;
    request.add_contents(text);
    const auto response = client.Translate(request);
    return MakeOutcome(response, response.ok() ? &response->translations(0).usage() : nullptr);
  };
  environment.out << absl::StrFormat("%-7s %9s %11s %11s %11s %11s %11s\n", "AT ONCE", "CALLS/S",
                                     "MEDIAN", "95%", "99%", "MAX", "TOKENS/S");
  environment.out.flush();
  for (const int callers : {1, options.concurrency}) {
    const absl::Status status = Measure(call, callers, options.duration, environment);
    if (!status.ok()) return Fail(status, "", environment);
  }
  return environment.out ? kExitOk : FailToWrite(errno, environment);
}

}  // namespace linnet::client
