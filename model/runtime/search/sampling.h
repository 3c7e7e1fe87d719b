#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "model/runtime/search/candidates.h"

namespace linnet::model {

// Counter-based random numbers: a bijection of 128-bit counters for each 64-bit key, which passes
// the usual statistical test batteries. Philox4x32-10, Salmon et al. 2011, Parallel Random Numbers:
// As Easy as 1, 2, 3.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform in [0, 1), a multiple of 2^-53: the first 53 bits of Philox, key (low, high half of
// seed), counter (position, hypothesis, 0, 0). A function of its arguments only, so a draw does not
// depend on the batch, on threads, or on previous draws.
double UniformDraw(uint64_t seed, int hypothesis, int position);

// Sampling parameters of one draw.
struct SamplingParameters {
  std::span<const TokenId> excluded = {};  // ascending
  // Ascending by token, of tokens in `excluded`: candidates nonetheless.
  std::span<const Adjustment> adjusted = {};
  int top_k = 0;
  float top_p = 1;
  float min_p = 0;
};

// Draws a token from a row with the uniform draw `uniform`. Tokens that are not excluded are ranked
// by probability, equal ones by logit, then by lower token. top_k > 0 keeps the first top_k of
// them; of these, top_p < 1 keeps the shortest prefix whose probabilities add up to at least top_p
// of all kept (at least one token). Of these, min_p > 0 keeps those with at least min_p times the
// probability of the first. With the kept tokens in the order of their ids and P the sum of
// their probabilities, the result is the first token at which the running sum exceeds uniform · P.
//
// The candidate's log-probability is that of the model, as in a search, not that of the draw. A
// partial row must contain its top_k + |excluded| highest logits and the adjusted ones that may be
// among the top_k. Returns nullopt if no token is allowed.
// Source: Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p).
std::optional<Candidate> DrawToken(const LogitRow& row, const SamplingParameters& sampling,
                                   double uniform);

}  // namespace linnet::model
