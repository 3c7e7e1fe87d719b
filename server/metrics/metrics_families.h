#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace linnet::server {

using MetricLabels = std::map<std::string, std::string>;

// The name, help text and buckets of every metric family of the page, except for those of the
// process and of the GPUs (metrics_process, metrics_gpu). docs/METRICS.md repeats the help texts.
class MetricFamilies {
  using CounterFamily = prometheus::Family<prometheus::Counter>;
  using GaugeFamily = prometheus::Family<prometheus::Gauge>;
  // All histograms of a family have the same buckets, so that they can be summed.
  struct HistogramFamily {
    prometheus::Histogram& Add(const MetricLabels& labels) { return family.Add(labels, buckets); }
    prometheus::Family<prometheus::Histogram>& family;
    std::vector<double> buckets;
  };

  prometheus::Registry& registry_;

 public:
  explicit MetricFamilies(prometheus::Registry& registry) : registry_(registry) {}

  CounterFamily& requests =
      Counter("linnet_requests_total",
              "Calls that ended, by method and status code. fault=client marks those refused with "
              "DEADLINE_TOO_SHORT, which are errors of the client.");
  HistogramFamily duration = Histogram("linnet_request_duration_seconds", Seconds(),
                                       "Time from the arrival of a call to its end.");
  GaugeFamily& in_flight = Gauge("linnet_requests_in_flight", "Calls in flight.");
  CounterFamily& rejected =
      Counter("linnet_rejected_total",
              "Calls rejected before decoding: invalid, not_found, tokens or bytes (the limit on "
              "admitted calls is reached), share (of one client), deadline (too close for the "
              "current load), short_deadline (too close for an idle server as well), engine "
              "(down), draining.");
  CounterFamily& model_requests =
      Counter("linnet_model_requests_total",
              "Calls, and lines of documents, for which a model was found and that ended, by model "
              "and status code. A pivot counts for both of its models.");
  CounterFamily& client_tokens =
      Counter("linnet_client_tokens_total",
              "Source and target tokens in the usage of answers, by the name of the client's token "
              "or certificate: the first 100 names, then \"other\", and \"unnamed\" without one.");
  CounterFamily& warnings =
      Counter("linnet_warnings_total", "Warnings about the texts of answered calls, by reason.");
  CounterFamily& denied =
      Counter("linnet_denied_total",
              "Calls refused because of their token: UNAUTHENTICATED (no valid token) or "
              "PERMISSION_DENIED (the token does not allow the call).");
  GaugeFamily& admitted_tokens = Gauge(
      "linnet_admitted_tokens",
      "Admitted work: the sum over segments of (source + expected target tokens) x beam size.");
  GaugeFamily& max_tokens =
      Gauge("linnet_admitted_tokens_limit", "Limit on linnet_admitted_tokens.");
  GaugeFamily& admitted_bytes =
      Gauge("linnet_admitted_bytes", "Memory that admitted calls hold, in bytes.");
  GaugeFamily& max_bytes = Gauge("linnet_admitted_bytes_limit", "Limit on linnet_admitted_bytes.");
  GaugeFamily& ready =
      Gauge("linnet_ready", "1 while the server accepts calls for at least one model.");
  GaugeFamily& connections = Gauge("linnet_connections", "Open connections to the gRPC service.");
  CounterFamily& connections_refused =
      Counter("linnet_connections_refused_total",
              "Connections closed at once because the limit on their number was reached.");
  CounterFamily& connections_unauthenticated =
      Counter("linnet_connections_unauthenticated_closed_total",
              "Connections closed because no call on them was authenticated in time, or because "
              "they held too much memory before that.");
  GaugeFamily& certificate_end =
      Gauge("linnet_tls_certificate_end_timestamp_seconds",
            "End of validity of the server's certificate chain (the earliest of its certificates), "
            "in seconds since 1970; 0 without TLS.");
  CounterFamily& log_lost = Counter("linnet_log_lines_lost_total",
                                    "Log lines dropped because they could not be written at once.");
  GaugeFamily& drain = Gauge("linnet_drain_seconds",
                             "Time in which the admitted work is expected to finish; 0 before the "
                             "first step.");
  HistogramFamily tokenize =
      Histogram("linnet_tokenize_duration_seconds", ShortSeconds(),
                "Time to split the texts of a call into segments and tokenise them.");
  HistogramFamily text_queue =
      Histogram("linnet_text_queue_duration_seconds", ShortSeconds(),
                "Time that the texts of a call wait for a thread that splits, tokenises or "
                "assembles them.");
  HistogramFamily first_segment =
      Histogram("linnet_time_to_first_segment_seconds", Seconds(),
                "Time from the arrival of a streaming call to its first text.");
  HistogramFamily estimate = Histogram(
      "linnet_admission_estimate_seconds", Seconds(),
      "Latency estimate of a call when it was admitted, or rejected because of its deadline.");
  GaugeFamily& safety_factor =
      Gauge("linnet_estimate_safety_factor",
            "Factor on latency estimates so that calls take no longer than the product: 99 % of "
            "those that find free rows (immediate), 99.5 % of those that wait for rows (waiting).");

  GaugeFamily& cache_bytes =
      Gauge("linnet_answer_cache_bytes", "Memory of the answers in the cache, in bytes.");
  CounterFamily& cache_hits =
      Counter("linnet_answer_cache_hits_total", "Sequences that were answered from the cache.");
  CounterFamily& cache_misses = Counter(
      "linnet_answer_cache_misses_total",
      "Sequences that may use the cache, and were added to the batch because neither it nor "
      "the batch had their answer.");
  CounterFamily& coalesced =
      Counter("linnet_coalesced_sequences_total",
              "Sequences that joined an identical one in the batch and share its result.");

  HistogramFamily queue =
      Histogram("linnet_queue_duration_seconds", Seconds(),
                "Time from the submission of a sequence until it is added to the batch.");
  HistogramFamily decode = Histogram(
      "linnet_decode_duration_seconds", Seconds(),
      "Time from the addition of a sequence to the batch to its last token, encoding included.");
  HistogramFamily encode =
      Histogram("linnet_encode_duration_seconds", ShortSeconds(),
                "Duration of the encoding in a step: of all groups of sequences that it added.");
  HistogramFamily step =
      Histogram("linnet_step_duration_seconds", ShortSeconds(),
                "Duration of a decoder step of the engine: one token for every row.");
  HistogramFamily rows =
      Histogram("linnet_step_rows", Counts(), "Decoder rows in use during a step.");
  GaugeFamily& rows_limit = Gauge("linnet_rows_limit", "Decoder rows of the engine.");
  GaugeFamily& sequences =
      Gauge("linnet_sequences", "Sequences waiting or running after the last step.");
  CounterFamily& outcomes =
      Counter("linnet_sequences_total",
              "Sequences that ended: finished, cancelled, expired, failed or shed (they had waited "
              "too long under overload).");
  CounterFamily& limited =
      Counter("linnet_length_limited_total",
              "Sequences that finished at their limit on target tokens instead of with an end "
              "token of the model.");
  CounterFamily& source_tokens =
      Counter("linnet_source_tokens_total", "Source tokens of finished sequences.");
  CounterFamily& target_tokens = Counter(
      "linnet_target_tokens_total", "Target tokens of the best hypotheses of finished sequences.");

  CounterFamily& restarts =
      Counter("linnet_engine_restarts_total", "Rebuilds of an engine after it failed.");
  GaugeFamily& model_info = Gauge("linnet_model_info", "1 for each served model.");
  GaugeFamily& model_serving =
      Gauge("linnet_model_serving",
            "1 for each model that accepts calls, 0 for one whose engine is down or that could not "
            "be loaded.");
  GaugeFamily& model_state =
      Gauge("linnet_model_state",
            "1 for the state of the engine of a model: available (on disk), loading or loaded.");
  CounterFamily& loads =
      Counter("linnet_model_loads_total", "Loads of the engine of a model: ok or failed.");
  CounterFamily& reloads = Counter("linnet_model_reloads_total",
                                   "Reloads of the models: ok, or failed for at least one model.");
  CounterFamily& token_reloads =
      Counter("linnet_token_reloads_total",
              "Reads of the token file after the first: ok when it had changed, failed when it "
              "could not be read (retried several times a second).");
  GaugeFamily& build_info =
      Gauge("linnet_build_info", "1, labelled with version, build type and compiler.");

 private:
  CounterFamily& Counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  GaugeFamily& Gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  }
  HistogramFamily Histogram(const char* name, std::vector<double> buckets, const char* help) {
    return {prometheus::BuildHistogram().Name(name).Help(help).Register(registry_),
            std::move(buckets)};
  }

  static std::vector<double> Doubling(double first, double last) {
    std::vector<double> buckets;
    for (double bound = first; bound <= last; bound *= 2) buckets.push_back(bound);
    return buckets;
  }
  // From one step on a GPU to a long document on two cores: 0.5 ms to 65 s.
  static std::vector<double> Seconds() { return Doubling(0.0005, 70); }
  // For steps and tokenising, which are shorter: 0.1 ms to 1.6 s.
  static std::vector<double> ShortSeconds() { return Doubling(0.0001, 2); }
  static std::vector<double> Counts() {
    return {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024};
  }
};

}  // namespace linnet::server
