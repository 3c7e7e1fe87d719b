#include "model/runtime/search/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace linnet::model {
namespace {

// A token that takes part in a draw.
struct Lot {
  float log_probability;
  float logit;
  TokenId token;
  double weight = 0;  // probability in units of the likeliest one's
};

bool Likelier(const Lot& a, const Lot& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  if (a.logit != b.logit) return a.logit > b.logit;
  return a.token < b.token;
}

bool LowerToken(const Lot& a, const Lot& b) { return a.token < b.token; }

// The best top_k, likeliest first.
std::vector<Lot> BestLots(const LogitRow& row, const SamplingParameters& sampling,
                          const std::optional<Candidate>& penalised) {
  TopCandidates top(std::min(sampling.top_k, static_cast<int>(row.logits.size())));
  if (penalised.has_value()) top.Push(*penalised);
  PushRow(row, sampling.excluded, top);
  std::vector<Lot> lots;
  for (const Candidate& best : top.Take())
    lots.push_back({best.log_probability, best.logit, best.token});
  return lots;
}

// Every token, in the order of ids.
std::vector<Lot> AllLots(const LogitRow& row, const SamplingParameters& sampling,
                         const std::optional<Candidate>& penalised) {
  std::vector<Lot> lots;
  lots.reserve(row.logits.size());
  for (size_t i = 0; i < row.logits.size(); ++i) {
    const TokenId token = row.Token(i);
    if (penalised.has_value() && token == penalised->token) {
      lots.push_back({penalised->log_probability, penalised->logit, token});
      continue;
    }
    if (std::binary_search(sampling.excluded.begin(), sampling.excluded.end(), token)) continue;
    const float log_probability = row.LogProbability(row.logits[i]);
    if (std::isfinite(log_probability)) lots.push_back({log_probability, row.logits[i], token});
  }
  if (!row.tokens.empty()) std::sort(lots.begin(), lots.end(), LowerToken);
  return lots;
}

double SumOfWeights(std::span<const Lot> lots) {
  double sum = 0;
  for (const Lot& lot : lots) sum += lot.weight;
  return sum;
}

// Leaves the fewest of the likeliest that hold `share` of the whole. Sorts no more of them than it
// must: the nucleus of 32000 tokens is small as a rule.
void KeepNucleus(float share, std::vector<Lot>& lots) {
  const double wanted = share * SumOfWeights(lots);
  double held = 0;
  size_t kept = 0;
  for (size_t chunk = 64; kept < lots.size(); chunk *= 4) {
    const size_t end = std::min(kept + chunk, lots.size());
    std::partial_sort(lots.begin() + kept, lots.begin() + end, lots.end(), Likelier);
    while (kept < end) {
      held += lots[kept++].weight;
      if (held >= wanted) {
        lots.resize(kept);
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
  // What was drawn before must not change what the probabilities are rounded to.
  LogitRow alone = row;
  alone.sum = 0;
  std::optional<Candidate> penalised;
  if (const auto logit = row.Logit(sampling.penalised); logit.has_value()) {
    penalised = alone.Extend(sampling.penalised, *logit, sampling.penalty);
    if (!std::isfinite(penalised->log_probability)) penalised.reset();
  }
  std::vector<Lot> lots = sampling.top_k > 0 ? BestLots(alone, sampling, penalised)
                                             : AllLots(alone, sampling, penalised);
  if (lots.empty()) return std::nullopt;
  const float highest =
      std::min_element(lots.begin(), lots.end(), Likelier)->log_probability;  // Likelier is "less"
  for (Lot& lot : lots) lot.weight = std::exp(lot.log_probability - highest);
  if (sampling.top_p < 1) KeepNucleus(sampling.top_p, lots);
  if (!std::is_sorted(lots.begin(), lots.end(), LowerToken))
    std::sort(lots.begin(), lots.end(), LowerToken);

  const double mark = uniform * SumOfWeights(lots);
  const Lot* drawn = nullptr;
  double sum = 0;
  for (const Lot& lot : lots) {
    if (lot.weight == 0) continue;
    drawn = &lot;
    sum += lot.weight;
    if (sum > mark) break;
  }
  return Candidate{row.sum + drawn->log_probability, drawn->log_probability, row.parent,
                   drawn->token, drawn->logit};
}

}  // namespace linnet::model
