#include "server/cache/answer_cache.h"

#include <cstring>
#include <iterator>
#include <span>
#include <type_traits>
#include <variant>

#include "model/runtime/bundle/sha256.h"

namespace linnet::server {
namespace {

// Allocations of an entry beside its vectors: the nodes of the list and the map, the strings,
// and the control block of the shared pointer.
constexpr int64_t kBytesPerEntry = 512;

template <typename Value>
int64_t VectorBytes(const std::vector<Value>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(Value));
}

int64_t VectorBytes(const CachedAnswer& answer) {
  int64_t bytes = kBytesPerEntry + VectorBytes(answer.hypotheses) + VectorBytes(answer.attention) +
                  VectorBytes(answer.stable_ends);
  for (const model::Hypothesis& hypothesis : answer.hypotheses)
    bytes += VectorBytes(hypothesis.tokens) + VectorBytes(hypothesis.token_scores);
  return bytes;
}

// Writes fields one after the other so that different fields never give the same bytes: numbers
// have a fixed size, and what varies in length begins with its length.
class KeyBytes {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void Add(Number number) {
    char bytes[sizeof(Number)];
    std::memcpy(bytes, &number, sizeof(Number));
    bytes_.append(bytes, sizeof(Number));
  }
  void Add(absl::string_view text) {
    Add(text.size());
    bytes_.append(text.data(), text.size());
  }
  void Add(std::span<const model::TokenId> tokens) {
    Add(tokens.size());
    bytes_.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

void AddOptions(const model::SearchOptions& options, KeyBytes& key) {
  const auto add = [&](auto field) {
    if constexpr (requires { (options.*field).has_value(); }) {
      key.Add((options.*field).has_value());
      key.Add((options.*field).value_or(0));
    } else {
      key.Add(options.*field);
    }
  };
  for (const model::SearchOption& option : model::kSearchOptions) std::visit(add, option.field);
}

}  // namespace

std::string ModelCache::MakeKey(const Caller& caller, const model::SequenceInput& input) const {
  // A field that is added to the input stops the build here.
  const auto& [id, source, before_text, after_text, prefix, start, silent, target, constraints,
               continuations, length, options, report_stable, align] = input;
  KeyBytes key;
  key.Add(model_);
  key.Add(cache_.tenant() == CacheTenant::kShared ? "" : caller.identity());
  key.Add(source);
  key.Add(before_text);
  key.Add(after_text);
  key.Add(prefix);
  key.Add(start != nullptr);
  if (start != nullptr) key.Add(start->text);
  key.Add(silent);
  key.Add(target.has_value());
  if (target.has_value()) key.Add(*target);
  key.Add(constraints.size());
  for (const std::vector<model::TokenId>& phrase : constraints) key.Add(phrase);
  key.Add(continuations != nullptr);
  if (continuations != nullptr) key.Add(*continuations);
  key.Add(length != nullptr);
  if (length != nullptr) key.Add(length->name());
  AddOptions(options, key);
  key.Add(align);
  return model::Sha256OfBytes(key.bytes()).value_or("");
}

void ModelCache::Insert(const std::string& key, CachedAnswer answer) {
  MutexLock lock(mu_);  // held to the end: Close erases everything that was inserted
  if (!closed_) cache_.Insert(model_, key, std::move(answer));
}

void ModelCache::Close() {
  MutexLock lock(mu_);
  closed_ = true;
  cache_.Erase(model_);
}

CacheStats AnswerCache::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

std::shared_ptr<const CachedAnswer> AnswerCache::Find(const std::string& key) {
  MutexLock lock(mu_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer;
}

void AnswerCache::Insert(const std::string& model, const std::string& key, CachedAnswer answer) {
  const int64_t bytes = VectorBytes(answer);
  if (key.empty() || bytes > max_bytes_) return;
  Entries erased;  // destroyed without the lock
  Entries inserted;
  inserted.push_back({key, model, std::make_shared<const CachedAnswer>(std::move(answer)), bytes});
  MutexLock lock(mu_);
  if (by_key_.contains(key)) return;
  while (stats_.bytes + bytes > max_bytes_) {
    Entry& last = entries_.back();
    by_key_.erase(last.key);
    stats_.bytes -= last.bytes;
    --stats_.entries;
    ++stats_.evictions;
    erased.splice(erased.begin(), entries_, std::prev(entries_.end()));
  }
  by_key_.emplace(inserted.front().key, inserted.begin());
  entries_.splice(entries_.begin(), inserted);
  stats_.bytes += bytes;
  ++stats_.entries;
}

void AnswerCache::Erase(const std::string& model) {
  Entries erased;  // destroyed without the lock
  MutexLock lock(mu_);
  for (auto next = entries_.begin(); next != entries_.end();) {
    const auto entry = next++;
    if (entry->model != model) continue;
    by_key_.erase(entry->key);
    stats_.bytes -= entry->bytes;
    --stats_.entries;
    erased.splice(erased.begin(), entries_, entry);
  }
}

}  // namespace linnet::server
