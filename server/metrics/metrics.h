#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/admission_observer.h"
#include "server/base/caller.h"
#include "server/base/mutex.h"
#include "server/schedule/engine_status.h"
#include "server/schedule/sequence.h"
#include "server/schedule/step_report.h"

namespace prometheus {
class Collectable;
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace linnet::server {

enum class Method {
  kTranslate,
  kSummarize,
  kStreamTranslate,
  kStreamSummarize,
  kTranslateDocument,
  kSummarizeDocument,
  kScore,
  kDetectLanguage,
  kListModels,
  kGetModel,
  kReload,
  kGetBatch,
  kSetLogLevel,
};
inline constexpr std::array kMethods = {Method::kTranslate,
                                        Method::kSummarize,
                                        Method::kStreamTranslate,
                                        Method::kStreamSummarize,
                                        Method::kTranslateDocument,
                                        Method::kSummarizeDocument,
                                        Method::kScore,
                                        Method::kDetectLanguage,
                                        Method::kListModels,
                                        Method::kGetModel,
                                        Method::kReload,
                                        Method::kGetBatch,
                                        Method::kSetLogLevel};
absl::string_view MethodName(Method method);

// The reasons of the warnings of an answer.
enum class WarningReason { kLanguageMismatch, kNotProse, kUnreadText, kSpanForced, kFactsDiffer };
inline constexpr std::array kWarningReasons = {
    WarningReason::kLanguageMismatch, WarningReason::kNotProse, WarningReason::kUnreadText,
    WarningReason::kSpanForced, WarningReason::kFactsDiffer};
absl::string_view ReasonName(WarningReason reason);

// Labels of linnet_model_info.
struct ModelLabels {
  std::string name, version, task, device, compute_type, sha256;
};

// Counts of a finished sequence.
struct SequenceFacts {
  Priority priority = Priority::kNormal;
  int source_tokens = 0;
  int target_tokens = 0;  // of the best hypothesis
  bool ended_by_limit = false;
};

class MetricFamilies;
class Nvml;

// Shows a count of a model's version. The counter goes on where a new version begins at zero.
struct MonotonicCounter {
  void Follow(int64_t now);
  prometheus::Counter* counter = nullptr;
  int64_t last = 0;
};

// Metrics of one model: the steps of its scheduler and the outcomes of its sequences. Owned by
// Metrics. Thread-safe.
class ModelMetrics {
 public:
  void StepMade(const StepReport& report);
  // Called by one thread. `restarts`: number of rebuilds of the engine so far.
  void SetRestarts(int restarts);
  void SetLoads(const LoadStats& stats);
  void SequenceFinished(const SequenceTimes& times, const SequenceFacts& facts);
  // Sequences that were answered from the cache before they reached the scheduler.
  void CacheHits(int sequences);
  // A call, or a line of a document, that this model was to answer has ended.
  void CallEnded(absl::StatusCode code);

 private:
  friend class Metrics;
  ModelMetrics() = default;
  prometheus::Gauge* info_ = nullptr;
  std::map<Priority, prometheus::Histogram*> queue_;
  prometheus::Histogram *decode_, *encode_, *step_, *rows_;
  std::map<absl::StatusCode, prometheus::Counter*> ended_;
  prometheus::Gauge *waiting_, *running_;
  prometheus::Counter *finished_, *cancelled_, *expired_, *failed_, *shed_, *limited_;
  std::map<LoadState, prometheus::Gauge*> states_;
  MonotonicCounter restarts_, loads_, load_failures_;
  prometheus::Counter *cache_hits_, *cache_misses_, *coalesced_;
  prometheus::Counter *source_tokens_, *target_tokens_;
};

// All metrics of the server; metrics_families.h has their names, help texts and buckets. Handles
// are resolved once, so counting is an atomic addition, and all metrics with known labels are on
// the page at zero from the start. One per server. Thread-safe.
class Metrics final : public AdmissionObserver {
 public:
  Metrics();
  ~Metrics() override;

  void CallStarted(Method method);
  // `clients_fault`: the client caused the error, although the code is one of a service failure.
  // UNAUTHENTICATED and PERMISSION_DENIED, which only the token of a call causes, count as Denied.
  void CallEnded(Method method, absl::StatusCode code, absl::Duration total,
                 bool clients_fault = false);
  void Rejected(RejectReason reason) override;
  void SetAdmissionLimits(int64_t tokens, int64_t bytes) override;
  void SetAdmitted(int64_t tokens, int64_t bytes, absl::Duration drain) override;
  // The end of validity of the server's certificate. Without a call the metric is 0.
  void SetCertificateEnd(absl::Time end);
  // A call was refused because of its token, with one of these codes, before it was started.
  void Denied(absl::StatusCode code);
  // `ready`: the server accepts calls.
  void SetReady(bool ready);
  // For every configured model: true if it accepts calls.
  void SetServing(const std::map<std::string, bool>& models);
  // Open connections; and since the start, connections refused because of the limits on their
  // number, and connections closed because no call on them was authenticated.
  void SetConnections(int open, int64_t refused, int64_t unauthenticated);
  void SetAnswerCacheBytes(int64_t bytes);
  // Lines that the log has lost since the start.
  void SetLostLogLines(int64_t lines);
  void Tokenized(absl::Duration time);
  // `time`: what the texts of one call waited for a thread of the text pool.
  void TextQueued(absl::Duration time);
  // Counts the usage of an answer for the client that pays for it. A client has a name if a token
  // or a certificate gives it one; only so many names have counters of their own.
  void TokensUsed(const Caller& caller, int64_t source_tokens, int64_t target_tokens);
  // Counts a warning about a text of an answered call.
  void Warned(WarningReason reason);
  // `time`: from the arrival of a streaming call to its first text.
  void FirstSegment(absl::Duration time);
  void Estimated(absl::Duration estimate) override;
  void SetSafetyFactor(const std::string& model, bool waits, double factor) override;

  // The metrics of a model's name; they live as long as this object.
  ModelMetrics& AddModel(const std::string& name);
  // The version of a model that is served from now on, and the rows of its engine.
  void ShowModel(const ModelLabels& labels, int rows);

  // The model is no longer served. Its counters stay.
  void RemoveModel(const std::string& name);
  // Counts a reload of the models; `ok`: no model failed.
  void Reloaded(bool ok);
  // Counts a read of a changed token file; not `ok`: an attempt to read it failed.
  void TokensReloaded(bool ok);

  // Adds the GPUs to the page unless `nvml` is null. Call it before page().
  void ShowGpus(std::unique_ptr<Nvml> nvml);
  // The page, for prometheus-cpp's exposer.
  std::shared_ptr<prometheus::Collectable> page() const;
  // The page in Prometheus' text format.
  std::string Text() const;

 private:
  struct PerMethod;
  class Page;

  std::shared_ptr<prometheus::Registry> registry_;
  std::shared_ptr<Page> page_;  // shared with the exposer
  std::unique_ptr<MetricFamilies> families_;
  std::map<Method, std::unique_ptr<PerMethod>> methods_;
  std::map<RejectReason, prometheus::Counter*> rejected_;
  prometheus::Gauge *admitted_tokens_, *admitted_bytes_, *max_tokens_, *max_bytes_, *drain_,
      *ready_, *connections_, *certificate_end_;
  prometheus::Histogram *tokenize_, *text_queue_, *first_segment_, *estimate_;
  prometheus::Counter *unauthenticated_, *permission_denied_, *tokens_ok_, *tokens_failed_;
  prometheus::Counter *reloads_ok_, *reloads_failed_, *connections_refused_, *log_lost_;
  prometheus::Counter* connections_unauthenticated_;
  prometheus::Gauge* cache_bytes_;
  // The tokens of a client's answers.
  struct ClientTokens {
    prometheus::Counter *source, *target;
  };
  ClientTokens ClientCounters(const std::string& client);

  std::map<WarningReason, prometheus::Counter*> warnings_;
  Mutex mu_;
  std::map<std::string, ClientTokens> clients_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::unique_ptr<ModelMetrics>> models_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, prometheus::Gauge*> serving_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
