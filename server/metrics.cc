#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace linnet::server {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using CounterFamily = prometheus::Family<prometheus::Counter>;
using GaugeFamily = prometheus::Family<prometheus::Gauge>;
using HistogramFamily = prometheus::Family<prometheus::Histogram>;

// From one step on a GPU to a long document on two cores: 0.5 ms … 65 s, doubling.
Buckets Seconds() {
  Buckets buckets;
  for (double bound = 0.0005; bound < 70; bound *= 2) buckets.push_back(bound);
  return buckets;
}
// Steps and splitting are shorter: 0.1 ms … 1.6 s.
Buckets ShortSeconds() {
  Buckets buckets;
  for (double bound = 0.0001; bound < 2; bound *= 2) buckets.push_back(bound);
  return buckets;
}
Buckets Counts() {
  return {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024};
}

constexpr std::array kCodes = {absl::StatusCode::kOk,
                               absl::StatusCode::kCancelled,
                               absl::StatusCode::kUnknown,
                               absl::StatusCode::kInvalidArgument,
                               absl::StatusCode::kDeadlineExceeded,
                               absl::StatusCode::kNotFound,
                               absl::StatusCode::kResourceExhausted,
                               absl::StatusCode::kUnimplemented,
                               absl::StatusCode::kUnavailable,
                               absl::StatusCode::kInternal};

absl::string_view ReasonName(RejectReason reason) {
  switch (reason) {
    case RejectReason::kInvalid:
      return "invalid";
    case RejectReason::kNotFound:
      return "not_found";
    case RejectReason::kTokens:
      return "tokens";
    case RejectReason::kBytes:
      return "bytes";
    case RejectReason::kShare:
      return "share";
    case RejectReason::kDeadline:
      return "deadline";
    case RejectReason::kEngine:
      return "engine";
    case RejectReason::kDraining:
      return "draining";
  }
  return "unknown";
}

double InSeconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

}  // namespace

absl::string_view MethodName(Method method) {
  switch (method) {
    case Method::kTranslate:
      return "Translate";
    case Method::kSummarize:
      return "Summarize";
    case Method::kStreamTranslate:
      return "StreamTranslate";
    case Method::kStreamSummarize:
      return "StreamSummarize";
    case Method::kTranslateDocument:
      return "TranslateDocument";
    case Method::kSummarizeDocument:
      return "SummarizeDocument";
    case Method::kScore:
      return "Score";
    case Method::kDetectLanguage:
      return "DetectLanguage";
    case Method::kListModels:
      return "ListModels";
    case Method::kGetModel:
      return "GetModel";
  }
  return "unknown";
}

// The whole page, in one list.
struct Metrics::Families {
  explicit Families(prometheus::Registry& registry) : registry(registry) {}

  CounterFamily& Counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  GaugeFamily& Gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  HistogramFamily& Histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry& registry;

  CounterFamily& requests =
      Counter("linnet_requests_total", "Calls that ended, by method and status code.");
  HistogramFamily& duration =
      Histogram("linnet_request_duration_seconds", "Arrival of a call to its answer.");
  GaugeFamily& in_flight =
      Gauge("linnet_requests_in_flight", "Calls that were taken and not answered yet.");
  CounterFamily& rejected = Counter("linnet_rejected_total",
                                    "Calls turned away before decoding: invalid, not_found, tokens "
                                    "or bytes (the house is full), share (of one client), deadline "
                                    "(too close), engine (down), draining.");
  GaugeFamily& admitted_tokens = Gauge(
      "linnet_admitted_tokens",
      "Work in the house: the sum over segments of (source + most target tokens) x beam size.");
  GaugeFamily& max_tokens =
      Gauge("linnet_admitted_tokens_limit", "Most of linnet_admitted_tokens.");
  GaugeFamily& admitted_bytes =
      Gauge("linnet_admitted_bytes", "Bytes of the requests in the house.");
  GaugeFamily& max_bytes = Gauge("linnet_admitted_bytes_limit", "Most of linnet_admitted_bytes.");
  GaugeFamily& ready = Gauge("linnet_ready", "1 while the server takes calls, for all its models.");
  GaugeFamily& drain = Gauge("linnet_drain_seconds",
                             "Time in which the work in the house is expected to be done; 0 until "
                             "the engine has been full for a second.");
  HistogramFamily& tokenize =
      Histogram("linnet_tokenize_seconds", "Splitting and tokenising the texts of a call.");
  CounterFamily& text_bytes =
      Counter("linnet_text_bytes_total", "Bytes of text that were tokenised.");

  HistogramFamily& queue =
      Histogram("linnet_queue_seconds", "Submission of a sequence to its place in the batch.");
  HistogramFamily& decode =
      Histogram("linnet_decode_seconds",
                "Place in the batch to the last token of a sequence, the encoder included.");
  HistogramFamily& encode = Histogram("linnet_encode_seconds", "Encoding one group of newcomers.");
  HistogramFamily& step =
      Histogram("linnet_step_seconds", "One decoder step of the engine: a token for every row.");
  HistogramFamily& cycle = Histogram("linnet_cycle_seconds",
                                     "One turn of the scheduler: dropping, encoding newcomers, the "
                                     "step, handing on what finished.");
  HistogramFamily& rows = Histogram("linnet_step_rows", "Decoder rows in use during a step.");
  HistogramFamily& step_sequences =
      Histogram("linnet_step_sequences", "Sequences that took part in a step.");
  GaugeFamily& rows_limit = Gauge("linnet_rows_limit", "Decoder rows of the engine.");
  GaugeFamily& memory_limit =
      Gauge("linnet_memory_tokens_limit", "Source tokens that the encoder memory holds.");
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

  GaugeFamily& engine_up =
      Gauge("linnet_engine_up", "1 while the engine works, 0 while it is down or stuck.");
  CounterFamily& restarts = Counter("linnet_engine_restarts_total",
                                    "Times that an engine was made again after it had failed.");
  GaugeFamily& model_info = Gauge("linnet_model_info", "1 for each model that is served.");
  GaugeFamily& load_time =
      Gauge("linnet_model_load_seconds", "Reading, converting and warming up the model.");
  CounterFamily& reloads = Counter("linnet_model_reloads_total",
                                   "Reloads of the models: ok, or failed in part or as a whole.");
  GaugeFamily& build_info = Gauge("linnet_build_info", "1, with the version of the server.");
  GaugeFamily& start_time =
      Gauge("process_start_time_seconds", "Start of the process, seconds since 1970.");
};

struct Metrics::PerMethod {
  std::map<absl::StatusCode, prometheus::Counter*> ended;
  prometheus::Histogram* duration;
  prometheus::Gauge* in_flight;
};

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      families_(std::make_unique<Families>(*registry_)) {
  Families& page = *families_;
  for (Method method : kMethods) {
    const std::string name(MethodName(method));
    auto handles = std::make_unique<PerMethod>();
    for (absl::StatusCode code : kCodes) {
      handles->ended[code] =
          &page.requests.Add({{"method", name}, {"code", absl::StatusCodeToString(code)}});
    }
    handles->duration = &page.duration.Add({{"method", name}}, Seconds());
    handles->in_flight = &page.in_flight.Add({{"method", name}});
    methods_[method] = std::move(handles);
  }
  for (RejectReason reason : kRejectReasons) {
    rejected_[reason] = &page.rejected.Add({{"reason", std::string(ReasonName(reason))}});
  }
  admitted_tokens_ = &page.admitted_tokens.Add({});
  admitted_bytes_ = &page.admitted_bytes.Add({});
  max_tokens_ = &page.max_tokens.Add({});
  max_bytes_ = &page.max_bytes.Add({});
  drain_ = &page.drain.Add({});
  ready_ = &page.ready.Add({});
  reloads_ok_ = &page.reloads.Add({{"result", "ok"}});
  reloads_failed_ = &page.reloads.Add({{"result", "failed"}});
  tokenize_ = &page.tokenize.Add({}, ShortSeconds());
  text_bytes_ = &page.text_bytes.Add({});
  page.build_info.Add({{"version", LINNET_VERSION}}).Set(1);
  page.start_time.Add({}).Set(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
}

Metrics::~Metrics() = default;

void Metrics::CallStarted(Method method) { methods_.at(method)->in_flight->Increment(); }

void Metrics::CallEnded(Method method, absl::StatusCode code, absl::Duration total) {
  PerMethod& handles = *methods_.at(method);
  auto ended = handles.ended.find(code);
  if (ended == handles.ended.end()) ended = handles.ended.find(absl::StatusCode::kUnknown);
  ended->second->Increment();
  handles.duration->Observe(InSeconds(total));
  handles.in_flight->Decrement();
}

void Metrics::Rejected(RejectReason reason) { rejected_.at(reason)->Increment(); }

void Metrics::SetAdmissionLimits(int64_t tokens, int64_t bytes) {
  max_tokens_->Set(static_cast<double>(tokens));
  max_bytes_->Set(static_cast<double>(bytes));
}

void Metrics::SetAdmitted(int64_t tokens, int64_t bytes, absl::Duration drain) {
  drain_->Set(InSeconds(drain));
  admitted_tokens_->Set(static_cast<double>(tokens));
  admitted_bytes_->Set(static_cast<double>(bytes));
}

void Metrics::SetReady(bool ready) { ready_->Set(ready ? 1 : 0); }

void Metrics::Tokenized(absl::Duration time, int64_t text_bytes) {
  tokenize_->Observe(InSeconds(time));
  text_bytes_->Increment(static_cast<double>(text_bytes));
}

ModelMetrics& Metrics::AddModel(const ModelLabels& labels, int rows, int64_t memory_tokens,
                                absl::Duration load_time) {
  Families& page = *families_;
  const std::map<std::string, std::string> model = {{"model", labels.name}};
  auto with = [&](const char* key, const char* value) {
    auto both = model;
    both[key] = value;
    return both;
  };
  MutexLock lock(mu_);
  std::unique_ptr<ModelMetrics>& known = models_[labels.name];
  const bool first = known == nullptr;
  if (first) known.reset(new ModelMetrics);
  ModelMetrics& handles = *known;
  if (handles.info_ != nullptr) page.model_info.Remove(handles.info_);
  handles.info_ = &page.model_info.Add({{"model", labels.name},
                                        {"version", labels.version},
                                        {"task", labels.task},
                                        {"device", labels.device},
                                        {"compute", labels.compute_type},
                                        {"sha256", labels.sha256}});
  handles.info_->Set(1);
  page.load_time.Add(model).Set(InSeconds(load_time));
  page.rows_limit.Add(model).Set(rows);
  page.memory_limit.Add(model).Set(static_cast<double>(memory_tokens));

  if (!first) return handles;
  handles.queue_ = &page.queue.Add(model, Seconds());
  handles.decode_ = &page.decode.Add(model, Seconds());
  handles.encode_ = &page.encode.Add(model, ShortSeconds());
  handles.step_ = &page.step.Add(model, ShortSeconds());
  handles.cycle_ = &page.cycle.Add(model, ShortSeconds());
  handles.rows_ = &page.rows.Add(model, Counts());
  handles.sequences_ = &page.step_sequences.Add(model, Counts());
  handles.waiting_ = &page.sequences.Add(with("state", "waiting"));
  handles.seated_ = &page.sequences.Add(with("state", "seated"));
  handles.up_ = &page.engine_up.Add(model);
  handles.up_->Set(1);
  handles.restarts_ = &page.restarts.Add(model);
  handles.finished_ = &page.outcomes.Add(with("outcome", "finished"));
  handles.cancelled_ = &page.outcomes.Add(with("outcome", "cancelled"));
  handles.expired_ = &page.outcomes.Add(with("outcome", "expired"));
  handles.failed_ = &page.outcomes.Add(with("outcome", "failed"));
  handles.shed_ = &page.outcomes.Add(with("outcome", "shed"));
  handles.limited_ = &page.limited.Add(model);
  handles.encoded_ = &page.encoded.Add(with("kind", "source"));
  handles.padding_ = &page.encoded.Add(with("kind", "padding"));
  handles.source_tokens_ = &page.source_tokens.Add(model);
  handles.target_tokens_ = &page.target_tokens.Add(model);
  return handles;
}

void Metrics::RemoveModel(const std::string& name) {
  MutexLock lock(mu_);
  const auto model = models_.find(name);
  if (model == models_.end() || model->second->info_ == nullptr) return;
  families_->model_info.Remove(std::exchange(model->second->info_, nullptr));
  for (prometheus::Gauge* gauge :
       {model->second->waiting_, model->second->seated_, model->second->up_})
    gauge->Set(0);
}

void Metrics::Reloaded(bool ok) { (ok ? reloads_ok_ : reloads_failed_)->Increment(); }

std::shared_ptr<prometheus::Collectable> Metrics::page() const { return registry_; }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

void ModelMetrics::StepMade(const StepReport& report, absl::Duration step) {
  cycle_->Observe(InSeconds(step));
  if (report.seated > 0) encode_->Observe(InSeconds(report.encode));
  if (report.stepped) {
    step_->Observe(InSeconds(report.decode));
    rows_->Observe(report.rows);
    sequences_->Observe(report.sequences);
  }
  waiting_->Set(report.waiting);
  seated_->Set(report.remaining);
  finished_->Increment(report.finished);
  cancelled_->Increment(report.cancelled);
  expired_->Increment(report.expired);
  failed_->Increment(report.failed);
  shed_->Increment(report.shed);
  encoded_->Increment(report.encoded_tokens);
  padding_->Increment(report.padded_encoded_tokens - report.encoded_tokens);
}

void ModelMetrics::SetEngine(bool up, int restarts) {
  up_->Set(up ? 1 : 0);
  if (const double more = restarts - restarts_->Value(); more > 0) restarts_->Increment(more);
}

void ModelMetrics::SequenceFinished(const SequenceTimes& times, int source_tokens,
                                    int target_tokens, bool ended_by_limit) {
  queue_->Observe(InSeconds(times.seated - times.submitted));
  decode_->Observe(InSeconds(times.finished - times.seated));
  source_tokens_->Increment(source_tokens);
  target_tokens_->Increment(target_tokens);
  if (ended_by_limit) limited_->Increment();
}

}  // namespace linnet::server
