#include "model/runtime/search/candidates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

namespace linnet::model {
namespace {

// Size of a block, whose logits are read one by one if the largest of them might be kept. Measured
// at 160 x 32000 and at one row: 64 beats 128 and 256, since most of the time goes into reading
// blocks while the heap fills.
constexpr int kBlock = 64;

// Four floats in a register of the baseline instruction set; explicit, since automatic
// vectorisation is not reliable here.
typedef float Floats __attribute__((vector_size(16)));
typedef int64_t Halves __attribute__((vector_size(16)));
constexpr int kLanes = 4;

Floats Load(const float* x) {
  Floats loaded;
  std::memcpy(&loaded, x, sizeof(loaded));
  return loaded;
}

Floats Larger(Floats a, Floats b) { return b > a ? b : a; }

// True if one of logits[0, kBlock) is above `bound`; NaN never is.
bool AnyAbove(const float* logits, float bound) {
  constexpr int kMaxima = 4;  // independent, so that their latencies overlap
  Floats largest[kMaxima];
  for (Floats& maximum : largest) maximum = Floats{} - std::numeric_limits<float>::infinity();
  for (int i = 0; i < kBlock; i += kMaxima * kLanes) {
    for (int j = 0; j < kMaxima; ++j) {
      largest[j] = Larger(largest[j], Load(logits + i + j * kLanes));
    }
  }
  const Floats all = Larger(Larger(largest[0], largest[1]), Larger(largest[2], largest[3]));
  const Halves halves = reinterpret_cast<Halves>(all > bound);
  return (halves[0] | halves[1]) != 0;
}

float Scaled(float value, float factor) {
  if (factor == 1) return value;
  return value < 0 ? value * factor : value / factor;
}

}  // namespace

bool Better(const Candidate& a, const Candidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  if (a.parent != b.parent) return a.parent < b.parent;
  if (a.logit != b.logit) return a.logit > b.logit;
  return a.token < b.token;
}

TopCandidates::TopCandidates(int capacity) : capacity_(capacity) { best_.reserve(capacity_); }

void TopCandidates::Push(const Candidate& candidate) {
  if (!std::isfinite(candidate.sum)) return;
  if (best_.size() < capacity_) {
    best_.push_back(candidate);
  } else if (!Better(candidate, best_.back())) {
    return;
  }
  auto at = best_.end() - 1;
  for (; at != best_.begin() && Better(candidate, at[-1]); --at) *at = at[-1];
  *at = candidate;
  if (best_.size() == capacity_) threshold_ = best_.back().sum;
}

std::vector<Candidate> TopCandidates::Take() {
  std::vector<Candidate> taken;
  Take(taken);
  return taken;
}

void TopCandidates::Take(std::vector<Candidate>& to) {
  threshold_ = std::numeric_limits<float>::lowest();
  to.swap(best_);
  best_.clear();
}

std::optional<float> LogitRow::Logit(TokenId token) const {
  if (tokens.empty()) {
    if (token < 0 || token >= std::ssize(logits)) return std::nullopt;
    return logits[token];
  }
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end()) return std::nullopt;
  return logits[found - tokens.begin()];
}

Candidate LogitRow::Extend(TokenId token, float logit) const {
  const float log_probability = LogProbability(logit);
  return {sum + log_probability, log_probability, parent, token, logit};
}

Candidate LogitRow::Extend(const Adjustment& adjustment, float logit) const {
  const float log_probability =
      Scaled(LogProbability(Scaled(logit, adjustment.logit_factor)), adjustment.score_factor) -
      adjustment.penalty;
  return {sum + log_probability, log_probability, parent, adjustment.token, logit};
}

void PushRow(const LogitRow& row, absl::FunctionRef<bool(TokenId)> excluded, TopCandidates& top) {
  const int size = static_cast<int>(row.logits.size());
  // The highest logit with a sum below the threshold, which only rises: no lower one is kept.
  float rejected = -std::numeric_limits<float>::infinity();
  for (int begin = 0; begin < size; begin += kBlock) {
    const int end = std::min(begin + kBlock, size);
    if (end - begin == kBlock && !AnyAbove(row.logits.data() + begin, rejected)) continue;
    for (int i = begin; i < end; ++i) {
      const float logit = row.logits[i];
      if (logit <= rejected) continue;
      if (!(row.sum + row.LogProbability(logit) >= top.threshold())) {
        rejected = std::max(rejected, logit);  // not if it is NaN
        continue;
      }
      const TokenId token = row.Token(i);
      if (!excluded(token)) top.Push(row.Extend(token, logit));
    }
  }
}

void PushRow(const LogitRow& row, std::span<const TokenId> excluded, TopCandidates& top) {
  PushRow(
      row,
      [&](TokenId token) { return std::binary_search(excluded.begin(), excluded.end(), token); },
      top);
}

std::vector<Candidate> AllocateBeam(std::vector<Candidate> candidates, std::span<const int> banks,
                                    int max) {
  std::map<int, std::vector<Candidate>, std::greater<>> by_bank;
  for (size_t i = 0; i < candidates.size(); ++i) by_bank[banks[i]].push_back(candidates[i]);
  size_t turns = 0;
  for (auto& [bank, members] : by_bank) {
    std::sort(members.begin(), members.end(), Better);
    turns = std::max(turns, members.size());
  }
  std::vector<Candidate> shared;
  for (size_t turn = 0; turn < turns; ++turn) {
    for (const auto& [bank, members] : by_bank) {
      if (turn < members.size() && std::ssize(shared) < max) shared.push_back(members[turn]);
    }
  }
  return shared;
}

}  // namespace linnet::model
