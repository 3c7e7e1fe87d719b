#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "model/runtime/engine.h"
#include "server/base/caller.h"
#include "server/base/mutex.h"

namespace linnet::server {

// The answer of an engine to a sequence.
struct CachedAnswer {
  std::vector<model::Hypothesis> hypotheses;  // best first
  std::vector<float> attention;               // SequenceEvent::attention
  // Lengths of the stable prefixes of the best hypothesis, in the order in which the engine
  // reported them: a stream gets the same parts from the cache as from the engine.
  std::vector<int> stable_ends;
};

// Which callers share answers.
enum class CacheTenant {
  kToken,   // those with the same Caller::identity: one token, or without tokens one address
  kShared,  // all
};

struct CacheStats {
  int64_t bytes = 0;
  int64_t entries = 0;
  int64_t evictions = 0;  // since the start, of entries that had to make room
};

// Answers of engines by key, bounded in bytes: the least recently used ones make room for new ones.
//
// An engine with batch invariance gives the same answer to the same sequence, bit for bit, in every
// batch, so an answer of the cache is the answer. One per server, used through
// ModelCache. Thread-safe.
class AnswerCache {
 public:
  // `max_bytes` bounds the memory of the entries, with that of the containers around them.
  AnswerCache(int64_t max_bytes, CacheTenant tenant) : max_bytes_(max_bytes), tenant_(tenant) {}

  CacheTenant tenant() const { return tenant_; }
  int64_t max_bytes() const { return max_bytes_; }
  CacheStats stats() const;

 private:
  friend class ModelCache;
  struct Entry {
    std::string key;
    std::string model;
    std::shared_ptr<const CachedAnswer> answer;
    int64_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // the most recently used first

  std::shared_ptr<const CachedAnswer> Find(const std::string& key);
  void Insert(const std::string& model, const std::string& key, CachedAnswer answer);
  void Erase(const std::string& model);

  const int64_t max_bytes_;
  const CacheTenant tenant_;
  mutable Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
  std::map<absl::string_view, Entries::iterator> by_key_ ABSL_GUARDED_BY(mu_);
  CacheStats stats_ ABSL_GUARDED_BY(mu_);
};

// The cache as one loaded model uses it. Thread-safe.
class ModelCache {
 public:
  // `model` identifies everything that an answer depends on beside its sequence: the bundle by its
  // hash, the device and the compute type. The cache outlives this object.
  ModelCache(AnswerCache& cache, std::string model) : cache_(cache), model_(std::move(model)) {}

  // The key of a sequence of this caller: a hash (SHA-256) of model, tenant and input. Sequences
  // with equal keys have the same answer. The id of the input and report_stable are not part of it.
  // Empty, which is the key of no answer, if the hash cannot be computed.
  std::string MakeKey(const Caller& caller, const model::SequenceInput& input) const;

  // Returns null without an answer.
  std::shared_ptr<const CachedAnswer> Find(const std::string& key) const {
    return cache_.Find(key);
  }
  void Insert(const std::string& key, CachedAnswer answer);
  // Erases the model's answers.
  void Clear() { cache_.Erase(model_); }
  // Erases the model's answers and inserts no more: the model is not served any longer.
  void Close();

 private:
  AnswerCache& cache_;
  const std::string model_;
  Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace linnet::server
