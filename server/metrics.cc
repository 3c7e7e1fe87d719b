#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

#include "server/metrics_gpu.h"
#include "server/metrics_process.h"

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
// Of a call: from a word to a long document.
Buckets Tokens() {
  Buckets buckets;
  for (double bound = 1; bound <= 65536; bound *= 2) buckets.push_back(bound);
  return buckets;
}

constexpr std::array kPriorities = {Priority::kBatch, Priority::kNormal, Priority::kInteractive};
const char* PriorityName(Priority priority) {
  return priority == Priority::kBatch    ? "batch"
         : priority == Priority::kNormal ? "normal"
                                         : "interactive";
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
    case Method::kReload:
      return "Reload";
    case Method::kGetBatch:
      return "GetBatch";
    case Method::kSetLogLevel:
      return "SetLogLevel";
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
  GaugeFamily& connections = Gauge("linnet_connections", "Open connections to the gRPC service.");
  CounterFamily& connections_refused =
      Counter("linnet_connections_refused_total",
              "Connections that were closed at once because there were as many as may be.");
  GaugeFamily& drain = Gauge("linnet_drain_seconds",
                             "Time in which the work in the house is expected to be done; 0 until "
                             "the engine has been full for a second.");
  HistogramFamily& tokenize =
      Histogram("linnet_tokenize_seconds", "Splitting and tokenising the texts of a call.");
  CounterFamily& text_bytes =
      Counter("linnet_text_bytes_total", "Bytes of text that were tokenised.");
  HistogramFamily& detokenize =
      Histogram("linnet_detokenize_seconds", "Making the texts of a call of what the engine said.");
  HistogramFamily& first_segment =
      Histogram("linnet_time_to_first_segment_seconds",
                "Arrival of a streaming call to the first of its text.");
  HistogramFamily& estimate = Histogram(
      "linnet_admission_estimate_seconds",
      "How long a call was expected to take when it was let in, or refused for its deadline.");
  GaugeFamily& margin =
      Gauge("linnet_admission_margin_ratio",
            "What estimates are multiplied by so that 99 of 100 calls take no longer: of calls "
            "that find a place at once (alone), and of those that wait for one.");

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

  CounterFamily& unknown_tokens =
      Counter("linnet_unknown_tokens_total",
              "Source tokens that stand for what the model has never seen, of the sequences that "
              "finished.");
  HistogramFamily& call_source_tokens =
      Histogram("linnet_request_source_tokens", "Source tokens of a call that was answered.");
  HistogramFamily& call_target_tokens =
      Histogram("linnet_request_target_tokens", "Target tokens of a call that was answered.");
  CounterFamily& oom_retries =
      Counter("linnet_oom_retries_total",
              "Groups that were encoded in two halves for want of memory for the whole.");

  GaugeFamily& abandoned =
      Gauge("linnet_engine_abandoned",
            "Engines that were given up, and replaced, and have not returned from their call.");
  GaugeFamily& engine_up =
      Gauge("linnet_engine_up", "1 while the engine works, 0 while it is down or stuck.");
  CounterFamily& restarts = Counter("linnet_engine_restarts_total",
                                    "Times that an engine was made again after it had failed.");
  GaugeFamily& model_info = Gauge("linnet_model_info", "1 for each model that is served.");
  GaugeFamily& load_time =
      Gauge("linnet_model_load_seconds", "Reading, converting and warming up the model.");
  CounterFamily& reloads = Counter("linnet_model_reloads_total",
                                   "Reloads of the models: ok, or failed in part or as a whole.");
  GaugeFamily& build_info = Gauge("linnet_build_info", "1, with what the server was built of.");
};

// The registry, and what is read anew at every scrape.
class Metrics::Page final : public prometheus::Collectable {
 public:
  explicit Page(std::shared_ptr<prometheus::Registry> registry) {
    parts_.push_back(std::move(registry));
    parts_.push_back(std::make_shared<ProcessMetrics>());
  }
  void Add(std::shared_ptr<prometheus::Collectable> part) { parts_.push_back(std::move(part)); }

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> all;
    for (const auto& part : parts_) {
      auto families = part->Collect();
      std::move(families.begin(), families.end(), std::back_inserter(all));
    }
    return all;
  }

 private:
  std::vector<std::shared_ptr<prometheus::Collectable>> parts_;
};

struct Metrics::PerMethod {
  std::map<absl::StatusCode, prometheus::Counter*> ended;
  prometheus::Histogram* duration;
  prometheus::Gauge* in_flight;
};

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      page_(std::make_shared<Page>(registry_)),
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
  connections_ = &page.connections.Add({});
  connections_refused_ = &page.connections_refused.Add({});
  reloads_ok_ = &page.reloads.Add({{"result", "ok"}});
  reloads_failed_ = &page.reloads.Add({{"result", "failed"}});
  tokenize_ = &page.tokenize.Add({}, ShortSeconds());
  text_bytes_ = &page.text_bytes.Add({});
  detokenize_ = &page.detokenize.Add({}, ShortSeconds());
  first_segment_ = &page.first_segment.Add({}, Seconds());
  estimate_ = &page.estimate.Add({}, Seconds());
  page.build_info
      .Add({{"version", LINNET_VERSION},
            {"build", LINNET_BUILD_TYPE},
            {"compiler", LINNET_COMPILER}})
      .Set(1);
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

void Metrics::SetConnections(int open, int64_t refused) {
  connections_->Set(open);
  connections_refused_->Increment(static_cast<double>(refused) - connections_refused_->Value());
}
void Metrics::SetReady(bool ready) { ready_->Set(ready ? 1 : 0); }

void Metrics::Tokenized(absl::Duration time, int64_t text_bytes) {
  tokenize_->Observe(InSeconds(time));
  text_bytes_->Increment(static_cast<double>(text_bytes));
}

void Metrics::Detokenized(absl::Duration time) { detokenize_->Observe(InSeconds(time)); }

void Metrics::FirstSegment(absl::Duration time) { first_segment_->Observe(InSeconds(time)); }

void Metrics::Estimated(absl::Duration estimate) { estimate_->Observe(InSeconds(estimate)); }

void Metrics::SetMargin(const std::string& model, bool waits, double ratio) {
  families_->margin.Add({{"model", model}, {"for", waits ? "waiting" : "alone"}}).Set(ratio);
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
  for (Priority priority : kPriorities)
    handles.queue_[priority] = &page.queue.Add(with("priority", PriorityName(priority)), Seconds());
  handles.call_source_tokens_ = &page.call_source_tokens.Add(model, Tokens());
  handles.call_target_tokens_ = &page.call_target_tokens.Add(model, Tokens());
  for (bool waits : {false, true}) SetMargin(labels.name, waits, 1);
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
  handles.abandoned_ = &page.abandoned.Add(model);
  handles.oom_retries_ = &page.oom_retries.Add(model);
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
  handles.unknown_tokens_ = &page.unknown_tokens.Add(model);
  handles.target_tokens_ = &page.target_tokens.Add(model);
  return handles;
}

void Metrics::RemoveModel(const std::string& name) {
  MutexLock lock(mu_);
  const auto model = models_.find(name);
  if (model == models_.end() || model->second->info_ == nullptr) return;
  families_->model_info.Remove(std::exchange(model->second->info_, nullptr));
  for (prometheus::Gauge* gauge : {model->second->waiting_, model->second->seated_,
                                   model->second->up_, model->second->abandoned_})
    gauge->Set(0);
}

void Metrics::Reloaded(bool ok) { (ok ? reloads_ok_ : reloads_failed_)->Increment(); }

void Metrics::ShowGpus(std::unique_ptr<Nvml> nvml) {
  if (nvml != nullptr) page_->Add(std::make_shared<GpuMetrics>(std::move(nvml)));
}

std::shared_ptr<prometheus::Collectable> Metrics::page() const { return page_; }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(page_->Collect());
}

void ModelMetrics::StepMade(const StepReport& report, absl::Duration step) {
  if (step > absl::ZeroDuration()) cycle_->Observe(InSeconds(step));
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
  oom_retries_->Increment(report.oom_retries);
  encoded_->Increment(report.encoded_tokens);
  padding_->Increment(report.padded_encoded_tokens - report.encoded_tokens);
}

void ModelMetrics::SetEngine(bool up, int restarts, int abandoned) {
  up_->Set(up ? 1 : 0);
  abandoned_->Set(abandoned);
  if (const double more = restarts - restarts_->Value(); more > 0) restarts_->Increment(more);
}

void ModelMetrics::SequenceFinished(const SequenceTimes& times, const SequenceFacts& facts) {
  queue_.at(facts.priority)->Observe(InSeconds(times.seated - times.submitted));
  decode_->Observe(InSeconds(times.finished - times.seated));
  source_tokens_->Increment(facts.source_tokens);
  unknown_tokens_->Increment(facts.unknown_tokens);
  target_tokens_->Increment(facts.target_tokens);
  if (facts.ended_by_limit) limited_->Increment();
}

void ModelMetrics::CallAnswered(int64_t source_tokens, int64_t target_tokens) {
  call_source_tokens_->Observe(static_cast<double>(source_tokens));
  call_target_tokens_->Observe(static_cast<double>(target_tokens));
}

}  // namespace linnet::server
