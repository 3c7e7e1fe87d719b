#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "server/metrics/metrics_families.h"
#include "server/metrics/metrics_gpu.h"
#include "server/metrics/metrics_process.h"

namespace linnet::server {
namespace {

constexpr std::array kPriorities = {Priority::kBatch, Priority::kNormal, Priority::kInteractive};

constexpr std::array kLoadStates = {std::pair(LoadState::kAvailable, "available"),
                                    std::pair(LoadState::kLoading, "loading"),
                                    std::pair(LoadState::kLoaded, "loaded")};

constexpr std::array kCodes = {absl::StatusCode::kOk,
                               absl::StatusCode::kCancelled,
                               absl::StatusCode::kUnknown,
                               absl::StatusCode::kInvalidArgument,
                               absl::StatusCode::kDeadlineExceeded,
                               absl::StatusCode::kNotFound,
                               absl::StatusCode::kResourceExhausted,
                               absl::StatusCode::kFailedPrecondition,
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
    case RejectReason::kShortDeadline:
      return "short_deadline";
    case RejectReason::kDeadline:
      return "deadline";
    case RejectReason::kEngine:
      return "engine";
    case RejectReason::kDraining:
      return "draining";
  }
  return "unknown";
}

// The clients whose tokens have counters of their own; names are not bounded where certificates
// give them. The rest share one counter.
constexpr size_t kMaxClients = 100;
constexpr char kOtherClients[] = "other";
constexpr char kUnnamedClients[] = "unnamed";

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

// The metrics page: the registry, and the collectors that are read at every scrape.
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
  prometheus::Counter* short_deadline;
  prometheus::Histogram* duration;
  prometheus::Gauge* in_flight;
};

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      page_(std::make_shared<Page>(registry_)),
      families_(std::make_unique<MetricFamilies>(*registry_)) {
  MetricFamilies& page = *families_;
  for (Method method : kMethods) {
    const std::string name(MethodName(method));
    auto handles = std::make_unique<PerMethod>();
    for (absl::StatusCode code : kCodes) {
      handles->ended[code] =
          &page.requests.Add({{"method", name}, {"code", absl::StatusCodeToString(code)}});
    }
    handles->short_deadline =
        &page.requests.Add({{"method", name},
                            {"code", absl::StatusCodeToString(absl::StatusCode::kDeadlineExceeded)},
                            {"fault", "client"}});
    handles->duration = &page.duration.Add({{"method", name}});
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
  connections_unauthenticated_ = &page.connections_unauthenticated.Add({});
  for (WarningReason reason : kWarningReasons)
    warnings_[reason] = &page.warnings.Add({{"reason", std::string(ReasonName(reason))}});
  ClientCounters(kUnnamedClients);  // on the page from the start
  certificate_end_ = &page.certificate_end.Add({});
  log_lost_ = &page.log_lost.Add({});
  cache_bytes_ = &page.cache_bytes.Add({});
  unauthenticated_ = &page.denied.Add({{"code", "UNAUTHENTICATED"}});
  permission_denied_ = &page.denied.Add({{"code", "PERMISSION_DENIED"}});
  tokens_ok_ = &page.token_reloads.Add({{"result", "ok"}});
  tokens_failed_ = &page.token_reloads.Add({{"result", "failed"}});
  reloads_ok_ = &page.reloads.Add({{"result", "ok"}});
  reloads_failed_ = &page.reloads.Add({{"result", "failed"}});
  tokenize_ = &page.tokenize.Add({});
  text_queue_ = &page.text_queue.Add({});
  first_segment_ = &page.first_segment.Add({});
  estimate_ = &page.estimate.Add({});
  page.build_info
      .Add({{"version", LINNET_VERSION},
            {"build", LINNET_BUILD_TYPE},
            {"compiler", LINNET_COMPILER}})
      .Set(1);
}

Metrics::~Metrics() = default;

void Metrics::CallStarted(Method method) { methods_.at(method)->in_flight->Increment(); }

void Metrics::CallEnded(Method method, absl::StatusCode code, absl::Duration total,
                        bool clients_fault) {
  PerMethod& handles = *methods_.at(method);
  if (code == absl::StatusCode::kPermissionDenied || code == absl::StatusCode::kUnauthenticated) {
    handles.in_flight->Decrement();
    return Denied(code);
  }
  auto ended = handles.ended.find(code);
  if (ended == handles.ended.end()) ended = handles.ended.find(absl::StatusCode::kUnknown);
  (clients_fault ? handles.short_deadline : ended->second)->Increment();
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

void Metrics::SetConnections(int open, int64_t refused, int64_t unauthenticated) {
  connections_->Set(open);
  connections_refused_->Increment(static_cast<double>(refused) - connections_refused_->Value());
  connections_unauthenticated_->Increment(static_cast<double>(unauthenticated) -
                                          connections_unauthenticated_->Value());
}
void Metrics::SetAnswerCacheBytes(int64_t bytes) { cache_bytes_->Set(static_cast<double>(bytes)); }
void Metrics::SetLostLogLines(int64_t lines) {
  log_lost_->Increment(static_cast<double>(lines) - log_lost_->Value());
}
void Metrics::SetCertificateEnd(absl::Time end) {
  certificate_end_->Set(absl::ToDoubleSeconds(end - absl::UnixEpoch()));
}
void Metrics::SetReady(bool ready) { ready_->Set(ready ? 1 : 0); }

void Metrics::SetServing(const std::map<std::string, bool>& models) {
  MutexLock lock(mu_);
  for (auto it = serving_.begin(); it != serving_.end();) {
    const auto gone = it++;
    if (models.contains(gone->first)) continue;
    families_->model_serving.Remove(gone->second);
    serving_.erase(gone);
  }
  for (const auto& [model, up] : models) {
    prometheus::Gauge*& gauge = serving_[model];
    if (gauge == nullptr) gauge = &families_->model_serving.Add({{"model", model}});
    gauge->Set(up ? 1 : 0);
  }
}

void Metrics::Tokenized(absl::Duration time) { tokenize_->Observe(InSeconds(time)); }

Metrics::ClientTokens Metrics::ClientCounters(const std::string& client) {
  MutexLock lock(mu_);
  const bool has_own = clients_.contains(client) || clients_.size() <= kMaxClients;
  const std::string name = has_own ? client : kOtherClients;
  const auto [found, is_new] = clients_.try_emplace(name);
  if (is_new) {
    auto& family = families_->client_tokens;
    found->second = {.source = &family.Add({{"client", name}, {"kind", "source"}}),
                     .target = &family.Add({{"client", name}, {"kind", "target"}})};
  }
  return found->second;
}

void Metrics::TokensUsed(const Caller& caller, int64_t source_tokens, int64_t target_tokens) {
  absl::string_view name = caller.client;
  const bool is_named = absl::ConsumePrefix(&name, kSubjectPrefix);
  const ClientTokens tokens = ClientCounters(is_named ? std::string(name) : kUnnamedClients);
  tokens.source->Increment(static_cast<double>(source_tokens));
  tokens.target->Increment(static_cast<double>(target_tokens));
}

absl::string_view ReasonName(WarningReason reason) {
  switch (reason) {
    case WarningReason::kLanguageMismatch:
      return "LANGUAGE_MISMATCH";
    case WarningReason::kNotProse:
      return "NOT_PROSE";
    case WarningReason::kUnreadText:
      return "UNREAD_TEXT";
    case WarningReason::kSpanForced:
      return "SPAN_FORCED";
    case WarningReason::kFactsDiffer:
      return "FACTS_DIFFER";
  }
  return "unknown";
}

void Metrics::Warned(WarningReason reason) { warnings_.at(reason)->Increment(); }

void Metrics::TextQueued(absl::Duration time) { text_queue_->Observe(InSeconds(time)); }

void Metrics::FirstSegment(absl::Duration time) { first_segment_->Observe(InSeconds(time)); }

void Metrics::Estimated(absl::Duration estimate) { estimate_->Observe(InSeconds(estimate)); }

void Metrics::SetSafetyFactor(const std::string& model, bool waits, double factor) {
  families_->safety_factor.Add({{"model", model}, {"for", waits ? "waiting" : "immediate"}})
      .Set(factor);
}

void Metrics::ShowModel(const ModelLabels& labels, int rows) {
  ModelMetrics& handles = AddModel(labels.name);
  MetricFamilies& page = *families_;
  MutexLock lock(mu_);
  if (handles.info_ != nullptr) page.model_info.Remove(handles.info_);
  handles.info_ = &page.model_info.Add({{"model", labels.name},
                                        {"version", labels.version},
                                        {"task", labels.task},
                                        {"device", labels.device},
                                        {"compute", labels.compute_type},
                                        {"sha256", labels.sha256}});
  handles.info_->Set(1);
  page.rows_limit.Add({{"model", labels.name}}).Set(rows);
}

ModelMetrics& Metrics::AddModel(const std::string& name) {
  MetricFamilies& page = *families_;
  const MetricLabels model = {{"model", name}};
  auto with = [&](const char* key, const char* value) {
    auto both = model;
    both[key] = value;
    return both;
  };
  MutexLock lock(mu_);
  std::unique_ptr<ModelMetrics>& known = models_[name];
  if (known != nullptr) return *known;
  known.reset(new ModelMetrics);
  ModelMetrics& handles = *known;
  for (Priority priority : kPriorities)
    handles.queue_[priority] = &page.queue.Add(with("priority", PriorityName(priority).data()));
  for (absl::StatusCode code : kCodes)
    handles.ended_[code] =
        &page.model_requests.Add(with("code", absl::StatusCodeToString(code).c_str()));
  for (bool waits : {false, true}) SetSafetyFactor(name, waits, 1);
  handles.decode_ = &page.decode.Add(model);
  handles.encode_ = &page.encode.Add(model);
  handles.step_ = &page.step.Add(model);
  handles.rows_ = &page.rows.Add(model);
  handles.waiting_ = &page.sequences.Add(with("state", "waiting"));
  handles.running_ = &page.sequences.Add(with("state", "running"));
  handles.restarts_.counter = &page.restarts.Add(model);
  for (const auto& [state, name] : kLoadStates)
    handles.states_[state] = &page.model_state.Add(with("state", name));
  handles.loads_.counter = &page.loads.Add(with("result", "ok"));
  handles.load_failures_.counter = &page.loads.Add(with("result", "failed"));
  handles.cache_hits_ = &page.cache_hits.Add(model);
  handles.cache_misses_ = &page.cache_misses.Add(model);
  handles.coalesced_ = &page.coalesced.Add(model);
  handles.finished_ = &page.outcomes.Add(with("outcome", "finished"));
  handles.cancelled_ = &page.outcomes.Add(with("outcome", "cancelled"));
  handles.expired_ = &page.outcomes.Add(with("outcome", "expired"));
  handles.failed_ = &page.outcomes.Add(with("outcome", "failed"));
  handles.shed_ = &page.outcomes.Add(with("outcome", "shed"));
  handles.limited_ = &page.limited.Add(model);
  handles.source_tokens_ = &page.source_tokens.Add(model);
  handles.target_tokens_ = &page.target_tokens.Add(model);
  return handles;
}

void Metrics::RemoveModel(const std::string& name) {
  MutexLock lock(mu_);
  const auto model = models_.find(name);
  if (model == models_.end() || model->second->info_ == nullptr) return;
  families_->model_info.Remove(std::exchange(model->second->info_, nullptr));
  model->second->waiting_->Set(0);
  model->second->running_->Set(0);
  for (const auto& [state, gauge] : model->second->states_) gauge->Set(0);
}

void Metrics::Reloaded(bool ok) { (ok ? reloads_ok_ : reloads_failed_)->Increment(); }

void Metrics::TokensReloaded(bool ok) { (ok ? tokens_ok_ : tokens_failed_)->Increment(); }

void Metrics::Denied(absl::StatusCode code) {
  (code == absl::StatusCode::kPermissionDenied ? permission_denied_ : unauthenticated_)
      ->Increment();
}

void Metrics::ShowGpus(std::unique_ptr<Nvml> nvml) {
  if (nvml != nullptr) page_->Add(std::make_shared<GpuMetrics>(std::move(nvml)));
}

std::shared_ptr<prometheus::Collectable> Metrics::page() const { return page_; }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(page_->Collect());
}

void ModelMetrics::StepMade(const StepReport& report) {
  if (report.added > 0) encode_->Observe(InSeconds(report.encode));
  if (report.stepped) {
    step_->Observe(InSeconds(report.decode));
    rows_->Observe(report.rows);
  }
  waiting_->Set(report.waiting);
  running_->Set(report.running);
  finished_->Increment(report.finished);
  cancelled_->Increment(report.cancelled);
  expired_->Increment(report.expired);
  failed_->Increment(report.failed);
  shed_->Increment(report.shed);
  cache_hits_->Increment(report.cache_hits);
  cache_misses_->Increment(report.cache_misses);
  coalesced_->Increment(report.coalesced);
}

void MonotonicCounter::Follow(int64_t now) {
  counter->Increment(static_cast<double>(now >= last ? now - last : now));
  last = now;
}

void ModelMetrics::SetRestarts(int restarts) { restarts_.Follow(restarts); }

void ModelMetrics::SetLoads(const LoadStats& stats) {
  for (const auto& [state, gauge] : states_) gauge->Set(state == stats.state ? 1 : 0);
  loads_.Follow(stats.loads);
  load_failures_.Follow(stats.failures);
}

void ModelMetrics::SequenceFinished(const SequenceTimes& times, const SequenceFacts& facts) {
  queue_.at(facts.priority)->Observe(InSeconds(times.added - times.submitted));
  decode_->Observe(InSeconds(times.finished - times.added));
  source_tokens_->Increment(facts.source_tokens);
  target_tokens_->Increment(facts.target_tokens);
  if (facts.ended_by_limit) limited_->Increment();
}

void ModelMetrics::CacheHits(int sequences) { cache_hits_->Increment(sequences); }

void ModelMetrics::CallEnded(absl::StatusCode code) {
  const auto ended = ended_.find(code);
  (ended == ended_.end() ? ended_.at(absl::StatusCode::kUnknown) : ended->second)->Increment();
}

}  // namespace linnet::server
