#include "model/runtime/search/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace linnet::model {
namespace {

// A candidate of a draw.
struct WeightedToken {
  float log_probability;
  float logit;
  TokenId token;
  double weight = 0;  // probability relative to that of the likeliest token
};

bool Likelier(const WeightedToken& a, const WeightedToken& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  if (a.logit != b.logit) return a.logit > b.logit;
  return a.token < b.token;
}

bool LowerToken(const WeightedToken& a, const WeightedToken& b) { return a.token < b.token; }

// All tokens, in the order of ids.
std::vector<WeightedToken> AllTokens(const LogitRow& row, const SamplingParameters& sampling,
                                     std::span<const Candidate> adjusted) {
  std::vector<WeightedToken> candidates;
  candidates.reserve(row.logits.size());
  for (size_t i = 0; i < row.logits.size(); ++i) {
    const TokenId token = row.Token(i);
    if (std::binary_search(sampling.excluded.begin(), sampling.excluded.end(), token)) continue;
    const float log_probability = row.LogProbability(row.logits[i]);
    if (std::isfinite(log_probability))
      candidates.push_back({log_probability, row.logits[i], token});
  }
  const auto others = std::ssize(candidates);
  for (const Candidate& candidate : adjusted)
    candidates.push_back({candidate.log_probability, candidate.logit, candidate.token});
  if (row.tokens.empty()) {
    std::inplace_merge(candidates.begin(), candidates.begin() + others, candidates.end(),
                       LowerToken);
  } else {
    std::sort(candidates.begin(), candidates.end(), LowerToken);
  }
  return candidates;
}

// Keeps the `max` likeliest tokens, likeliest first.
void KeepLikeliest(int max, std::vector<WeightedToken>& candidates) {
  const auto kept = std::min<int64_t>(max, std::ssize(candidates));
  std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(), Likelier);
  candidates.resize(kept);
}

double SumOfWeights(std::span<const WeightedToken> candidates) {
  double sum = 0;
  for (const WeightedToken& candidate : candidates) sum += candidate.weight;
  return sum;
}

// Keeps the shortest prefix of the likeliest tokens that has `share` of the sum of weights. Sorts
// in chunks: the nucleus of 32000 tokens is usually small.
void KeepNucleus(float share, std::vector<WeightedToken>& candidates) {
  const double wanted = share * SumOfWeights(candidates);
  double held = 0;
  size_t kept = 0;
  for (size_t chunk = 64; kept < candidates.size(); chunk *= 4) {
    const size_t end = std::min(kept + chunk, candidates.size());
    std::partial_sort(candidates.begin() + kept, candidates.begin() + end, candidates.end(),
                      Likelier);
    while (kept < end) {
      held += candidates[kept++].weight;
      if (held >= wanted) {
        candidates.resize(kept);
        return;
      }
    }
  }
}

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

double UniformDraw(uint64_t seed, int hypothesis, int position) {
  const auto bits =
      Philox({static_cast<uint32_t>(position), static_cast<uint32_t>(hypothesis), 0, 0},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<double>((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

std::optional<Candidate> DrawToken(const LogitRow& row, const SamplingParameters& sampling,
                                   double uniform) {
  // Without the hypothesis's sum, which would change the rounding of the probabilities.
  LogitRow alone = row;
  alone.sum = 0;
  std::vector<Candidate> adjusted;
  for (const Adjustment& adjustment : sampling.adjusted) {
    const std::optional<float> logit = row.Logit(adjustment.token);
    if (!logit.has_value()) continue;
    const Candidate candidate = alone.Extend(adjustment, *logit);
    if (std::isfinite(candidate.log_probability)) adjusted.push_back(candidate);
  }
  std::vector<WeightedToken> candidates = AllTokens(alone, sampling, adjusted);
  if (sampling.top_k > 0) KeepLikeliest(sampling.top_k, candidates);
  if (candidates.empty()) return std::nullopt;
  const float highest = std::min_element(candidates.begin(), candidates.end(), Likelier)
                            ->log_probability;  // Likelier is "less"
  for (WeightedToken& candidate : candidates)
    candidate.weight = std::exp(candidate.log_probability - highest);
  if (sampling.top_p < 1) KeepNucleus(sampling.top_p, candidates);
  if (sampling.min_p > 0) {
    std::erase_if(candidates, [&](const WeightedToken& candidate) {
      return candidate.weight < static_cast<double>(sampling.min_p);
    });
  }
  if (!std::is_sorted(candidates.begin(), candidates.end(), LowerToken))
    std::sort(candidates.begin(), candidates.end(), LowerToken);

  const double mark = uniform * SumOfWeights(candidates);
  const WeightedToken* drawn = nullptr;
  double sum = 0;
  for (const WeightedToken& candidate : candidates) {
    if (candidate.weight == 0) continue;
    drawn = &candidate;
    sum += candidate.weight;
    if (sum > mark) break;
  }
  return Candidate{row.sum + drawn->log_probability, drawn->log_probability, row.parent,
                   drawn->token, drawn->logit};
}

}  // namespace linnet::model
