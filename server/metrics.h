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
#include "server/mutex.h"
#include "server/schedule/batcher.h"

namespace prometheus {
class Collectable;
class Counter;
class Gauge;
class Histogram;
class Registry;
template <typename T>
class Family;
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
};
inline constexpr std::array kMethods = {
    Method::kTranslate,       Method::kSummarize,         Method::kStreamTranslate,
    Method::kStreamSummarize, Method::kTranslateDocument, Method::kSummarizeDocument,
    Method::kScore,           Method::kDetectLanguage,    Method::kListModels,
    Method::kGetModel};
absl::string_view MethodName(Method method);

// Why a request was turned away before any decoding.
enum class RejectReason {
  kInvalid,
  kNotFound,
  kTokens,
  kBytes,
  kShare,
  kDeadline,
  kEngine,
  kDraining
};
inline constexpr std::array kRejectReasons = {RejectReason::kInvalid, RejectReason::kNotFound,
                                              RejectReason::kTokens,  RejectReason::kBytes,
                                              RejectReason::kShare,   RejectReason::kDeadline,
                                              RejectReason::kEngine,  RejectReason::kDraining};

// What identifies a served model on the metrics page.
struct ModelLabels {
  std::string name, version, task, device, compute_type, sha256;
};

// The numbers of one model: its scheduler's steps and what became of its sequences. Thread-safe.
class ModelMetrics {
 public:
  void StepMade(const StepReport& report, absl::Duration step);
  // Whether the engine works, and how often it was made again.
  void SetEngine(bool up, int restarts);
  // A sequence that finished.
  void SequenceFinished(const SequenceTimes& times, int source_tokens, int target_tokens,
                        bool ended_by_limit);

 private:
  friend class Metrics;
  ModelMetrics() = default;
  prometheus::Gauge* info_ = nullptr;
  prometheus::Histogram *queue_, *decode_, *encode_, *step_, *cycle_, *rows_, *sequences_;
  prometheus::Gauge *waiting_, *seated_, *up_;
  prometheus::Counter *finished_, *cancelled_, *expired_, *failed_, *shed_, *limited_;
  prometheus::Counter* restarts_;
  prometheus::Counter *encoded_, *padding_, *source_tokens_, *target_tokens_;
};

// Every metric of the server: name, help and buckets stand in metrics.cc alone. Handles are
// resolved once, so that counting is an atomic addition, and everything with known labels is on the
// page at zero from the start. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void CallStarted(Method method);
  void CallEnded(Method method, absl::StatusCode code, absl::Duration total);
  void Rejected(RejectReason reason);
  void SetAdmissionLimits(int64_t tokens, int64_t bytes);
  // What is in the house, and the time in which it can be expected to be done.
  void SetAdmitted(int64_t tokens, int64_t bytes, absl::Duration drain);
  // Whether the server takes calls.
  void SetReady(bool ready);
  void Tokenized(absl::Duration time, int64_t text_bytes);

  // Adds the model to the page, or changes what the page says of it. `rows` and `memory_tokens` are
  // what its engine holds at most. The numbers are those of the name, and live as long as the page.
  ModelMetrics& AddModel(const ModelLabels& labels, int rows, int64_t memory_tokens,
                         absl::Duration load_time);

  // It is not served any more; its counters stay.
  void RemoveModel(const std::string& name);
  // A reload of the models, and whether all of it worked.
  void Reloaded(bool ok);

  // What the exposer serves.
  std::shared_ptr<prometheus::Collectable> page() const;
  // The page as text.
  std::string Text() const;

 private:
  struct Families;
  struct PerMethod;

  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<Families> families_;
  std::map<Method, std::unique_ptr<PerMethod>> methods_;
  std::map<RejectReason, prometheus::Counter*> rejected_;
  prometheus::Gauge *admitted_tokens_, *admitted_bytes_, *max_tokens_, *max_bytes_, *drain_,
      *ready_;
  prometheus::Histogram* tokenize_;
  prometheus::Counter* text_bytes_;
  prometheus::Counter *reloads_ok_, *reloads_failed_;
  Mutex mu_;
  std::map<std::string, std::unique_ptr<ModelMetrics>> models_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
