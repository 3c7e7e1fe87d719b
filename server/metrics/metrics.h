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
#include "server/base/caller.h"
#include "server/base/mutex.h"
#include "server/schedule/admission_observer.h"
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

// What identifies a served model on the metrics page.
struct ModelLabels {
  std::string name, version, task, device, compute_type, sha256;
};

// What a sequence that finished came to.
struct SequenceFacts {
  Priority priority = Priority::kNormal;
  int source_tokens = 0;
  int unknown_tokens = 0;  // of the source: characters that the model has never seen
  int target_tokens = 0;   // of the best hypothesis
  bool ended_by_limit = false;
};

class MetricFamilies;
class Nvml;

// The numbers of one model: its scheduler's steps and what became of its sequences. Thread-safe.
class ModelMetrics {
 public:
  void StepMade(const StepReport& report, absl::Duration step);
  // Whether the engine works, and how often it was made again.
  void SetEngine(bool up, int restarts);
  void SequenceFinished(const SequenceTimes& times, const SequenceFacts& facts);
  // A call that was answered, with all of its sequences.
  void CallAnswered(int64_t source_tokens, int64_t target_tokens);

 private:
  friend class Metrics;
  ModelMetrics() = default;
  prometheus::Gauge* info_ = nullptr;
  std::map<Priority, prometheus::Histogram*> queue_;
  prometheus::Histogram *decode_, *encode_, *step_, *cycle_, *rows_, *sequences_;
  prometheus::Histogram *call_source_tokens_, *call_target_tokens_;
  prometheus::Gauge *waiting_, *running_, *up_;
  prometheus::Counter *finished_, *cancelled_, *expired_, *failed_, *shed_, *limited_;
  prometheus::Counter *restarts_, *oom_retries_;
  prometheus::Counter *encoded_, *padding_, *source_tokens_, *unknown_tokens_, *target_tokens_;
};

// Every metric of the server. Their names, helps and buckets stand in metrics_families.h. Handles
// are resolved once, so that counting is an atomic addition, and everything with known labels is on
// the page at zero from the start. Thread-safe.
class Metrics final : public AdmissionObserver {
 public:
  Metrics();
  ~Metrics() override;

  void CallStarted(Method method);
  // `clients_fault`: though the code alone says that the service failed.
  void CallEnded(Method method, absl::StatusCode code, absl::Duration total,
                 bool clients_fault = false);
  void Rejected(RejectReason reason) override;
  void SetAdmissionLimits(int64_t tokens, int64_t bytes) override;
  // What is in the house, and the time in which it can be expected to be done.
  void SetAdmitted(int64_t tokens, int64_t bytes, absl::Duration drain) override;
  // When the server's certificate is no longer valid; 0 is shown without one.
  void SetCertificateEnd(absl::Time end);
  // A call that was refused for its token, UNAUTHENTICATED or PERMISSION_DENIED.
  void Denied(absl::StatusCode code);
  // Whether the server takes calls.
  void SetReady(bool ready);
  // Which models take calls, of all that are to be served.
  void SetServing(const std::map<std::string, bool>& models);
  // Connections that are open, and how many were refused since the start because of their number.
  void SetConnections(int open, int64_t refused, int64_t unauthenticated);
  // Lines that the log has lost since the start.
  void SetLogLost(int64_t lines);
  void Tokenized(absl::Duration time, int64_t text_bytes);
  // Making texts of what the engine said, for one call.
  void Detokenized(absl::Duration time);
  // From the arrival of a stream's call to the first of its text.
  void FirstSegment(absl::Duration time);
  // How long a call was expected to take when it was let in or refused, and what such estimates are
  // multiplied by to be kept to.
  void Estimated(absl::Duration estimate) override;
  void SetSafetyFactor(const std::string& model, bool waits, double factor) override;

  // Adds the model to the page, or changes what the page says of it. `rows` and
  // `encoder_cache_tokens` are what its engine holds at most. The numbers are those of the name,
  // and live as long as the page.
  ModelMetrics& AddModel(const ModelLabels& labels, int rows, int64_t encoder_cache_tokens,
                         absl::Duration load_time);

  // It is not served any more; its counters stay.
  void RemoveModel(const std::string& name);
  // A reload of the models, and whether all of it worked.
  void Reloaded(bool ok);
  // Tokens that had changed were read; or (not `ok`) their file could not be, which counts each
  // try.
  void TokensReloaded(bool ok);

  // From now on the page shows GPUs, if `nvml` is not null; before anybody has the page.
  void ShowGpus(std::unique_ptr<Nvml> nvml);
  // What the exposer serves.
  std::shared_ptr<prometheus::Collectable> page() const;
  // The page as text.
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
  prometheus::Histogram *tokenize_, *detokenize_, *first_segment_, *estimate_;
  prometheus::Counter* text_bytes_;
  prometheus::Counter *unauthenticated_, *permission_denied_, *tokens_ok_, *tokens_failed_;
  prometheus::Counter *reloads_ok_, *reloads_failed_, *connections_refused_, *log_lost_;
  prometheus::Counter* connections_unauthenticated_;
  Mutex mu_;
  std::map<std::string, std::unique_ptr<ModelMetrics>> models_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, prometheus::Gauge*> serving_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
