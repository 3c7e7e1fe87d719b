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

// What the page of metrics is made of: the name, the help and the buckets of every family, but for
// those of the process and the GPUs (metrics_process, metrics_gpu). docs/METRICS.md explains them.
class MetricFamilies {
  using CounterFamily = prometheus::Family<prometheus::Counter>;
  using GaugeFamily = prometheus::Family<prometheus::Gauge>;
  // All histograms of a family have the same buckets, so that they can be added up.
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
              "Calls that ended, by method and status code; with fault=client those of a "
              "code that blames the service otherwise.");
  HistogramFamily duration =
      Histogram("linnet_request_duration_seconds", Seconds(), "Arrival of a call to its answer.");
  GaugeFamily& in_flight =
      Gauge("linnet_requests_in_flight", "Calls that were taken and not answered yet.");
  CounterFamily& rejected =
      Counter("linnet_rejected_total",
              "Calls turned away before decoding: invalid, not_found, tokens "
              "or bytes (the house is full), share (of one client), deadline "
              "(too close while so much is to be done), short_deadline (too close for "
              "an idle server as well), engine (down), draining.");
  CounterFamily& denied =
      Counter("linnet_denied_total",
              "Calls refused for their token: UNAUTHENTICATED (none that the server knows) or "
              "PERMISSION_DENIED (it does not allow this).");
  GaugeFamily& admitted_tokens = Gauge(
      "linnet_admitted_tokens",
      "Work in the house: the sum over segments of (source + most target tokens) x beam size.");
  GaugeFamily& max_tokens =
      Gauge("linnet_admitted_tokens_limit", "Most of linnet_admitted_tokens.");
  GaugeFamily& admitted_bytes = Gauge("linnet_admitted_bytes", "Bytes of memory that calls hold.");
  GaugeFamily& max_bytes = Gauge("linnet_admitted_bytes_limit", "Most of linnet_admitted_bytes.");
  GaugeFamily& ready =
      Gauge("linnet_ready", "1 while the server takes calls, for any of its models.");
  GaugeFamily& connections = Gauge("linnet_connections", "Open connections to the gRPC service.");
  CounterFamily& connections_refused =
      Counter("linnet_connections_refused_total",
              "Connections that were closed at once because there were as many as may be.");
  CounterFamily& connections_unauthenticated =
      Counter("linnet_connections_unauthenticated_closed_total",
              "Connections that were closed because no call on them was authenticated in time, or "
              "they held too much before.");
  GaugeFamily& certificate_end =
      Gauge("linnet_tls_certificate_end_timestamp_seconds",
            "When the server's certificate, or the first of its chain, is no longer valid, in "
            "seconds since 1970; 0 without one.");
  CounterFamily& log_lost =
      Counter("linnet_log_lines_lost_total",
              "Lines of the log that could not be written at once: nobody waits for its reader.");
  GaugeFamily& drain = Gauge("linnet_drain_seconds",
                             "Time in which the work in the house is expected to be done; 0 until "
                             "the engine has been full for a second.");
  HistogramFamily tokenize = Histogram("linnet_tokenize_duration_seconds", ShortSeconds(),
                                       "Splitting and tokenising the texts of a call.");
  CounterFamily& text_bytes =
      Counter("linnet_text_bytes_total", "Bytes of text that were tokenised.");
  HistogramFamily detokenize = Histogram("linnet_detokenize_duration_seconds", ShortSeconds(),
                                         "Making the texts of a call of what the engine said.");
  HistogramFamily first_segment =
      Histogram("linnet_time_to_first_segment_seconds", Seconds(),
                "Arrival of a streaming call to the first of its text.");
  HistogramFamily estimate = Histogram(
      "linnet_admission_estimate_seconds", Seconds(),
      "How long a call was expected to take when it was let in, or refused for its deadline.");
  GaugeFamily& safety_factor =
      Gauge("linnet_estimate_safety_factor",
            "What estimates are multiplied by so that calls take no longer: 99 of 100 that find "
            "their rows free (immediate), 995 of 1000 of those that wait for them.");

  HistogramFamily queue = Histogram("linnet_queue_duration_seconds", Seconds(),
                                    "Submission of a sequence to its place in the batch.");
  HistogramFamily decode =
      Histogram("linnet_decode_duration_seconds", Seconds(),
                "Place in the batch to the last token of a sequence, the encoder included.");
  HistogramFamily encode = Histogram("linnet_encode_duration_seconds", ShortSeconds(),
                                     "Encoding one group of newcomers.");
  HistogramFamily step = Histogram("linnet_step_duration_seconds", ShortSeconds(),
                                   "One decoder step of the engine: a token for every row.");
  HistogramFamily cycle = Histogram("linnet_cycle_duration_seconds", ShortSeconds(),
                                    "One turn of the scheduler: dropping, encoding newcomers, the "
                                    "step, handing on what finished.");
  HistogramFamily rows =
      Histogram("linnet_step_rows", Counts(), "Decoder rows in use during a step.");
  HistogramFamily step_sequences =
      Histogram("linnet_step_sequences", Counts(), "Sequences that took part in a step.");
  GaugeFamily& rows_limit = Gauge("linnet_rows_limit", "Decoder rows of the engine.");
  GaugeFamily& memory_limit =
      Gauge("linnet_encoder_cache_tokens_limit", "Source tokens that the encoder memory holds.");
  GaugeFamily& sequences = Gauge(
      "linnet_sequences", "Sequences that wait for a place or are seated, after the last step.");
  CounterFamily& outcomes =
      Counter("linnet_sequences_total",
              "Sequences that ended: finished, cancelled, expired, failed or shed (turned away "
              "because they had waited too long).");
  CounterFamily& limited = Counter(
      "linnet_length_limited_total",
      "Sequences that finished at their limit on target tokens instead of by the model's own end.");
  CounterFamily& encoded = Counter(
      "linnet_encoder_tokens_total",
      "Positions that went through the encoder; kind padding over the sum is the padding ratio.");
  CounterFamily& source_tokens =
      Counter("linnet_source_tokens_total", "Source tokens of the sequences that finished.");
  CounterFamily& target_tokens =
      Counter("linnet_target_tokens_total",
              "Target tokens of the best hypotheses of the sequences that finished.");

  CounterFamily& unknown_tokens =
      Counter("linnet_unknown_tokens_total",
              "Source tokens that stand for what the model has never seen, of the sequences that "
              "finished.");
  HistogramFamily call_source_tokens = Histogram("linnet_request_source_tokens", Tokens(),
                                                 "Source tokens of a call that was answered.");
  HistogramFamily call_target_tokens = Histogram("linnet_request_target_tokens", Tokens(),
                                                 "Target tokens of a call that was answered.");
  CounterFamily& oom_retries =
      Counter("linnet_oom_retries_total",
              "Groups that were encoded in two halves for want of memory for the whole.");

  GaugeFamily& engine_up =
      Gauge("linnet_engine_up", "1 while the engine works, 0 while it is down or has failed.");
  CounterFamily& restarts = Counter("linnet_engine_restarts_total",
                                    "Times that an engine was made again after it had failed.");
  GaugeFamily& model_info = Gauge("linnet_model_info", "1 for each model that is served.");
  GaugeFamily& model_serving =
      Gauge("linnet_model_serving",
            "1 for each model that takes calls, 0 for one whose engine does not work or that could "
            "not be loaded.");
  GaugeFamily& load_time =
      Gauge("linnet_model_load_duration_seconds", "Reading, converting and warming up the model.");
  CounterFamily& reloads = Counter("linnet_model_reloads_total",
                                   "Reloads of the models: ok, or failed in part or as a whole.");
  CounterFamily& token_reloads =
      Counter("linnet_token_reloads_total",
              "Reads of the file of tokens after the first: ok when it had changed, failed when it "
              "could not be read, which is tried again several times a second.");
  GaugeFamily& build_info = Gauge("linnet_build_info", "1, with what the server was built of.");

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
  // From one step on a GPU to a long document on two cores: 0.5 ms … 65 s.
  static std::vector<double> Seconds() { return Doubling(0.0005, 70); }
  // Steps and splitting are shorter: 0.1 ms … 1.6 s.
  static std::vector<double> ShortSeconds() { return Doubling(0.0001, 2); }
  static std::vector<double> Counts() {
    return {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024};
  }
  // Of a call: from a word to a long document.
  static std::vector<double> Tokens() { return Doubling(1, 65536); }
};

}  // namespace linnet::server
