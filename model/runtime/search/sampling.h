#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "model/runtime/search/candidates.h"

namespace linnet::model {

// Random numbers without a state: a bijection of 128-bit counters for each 64-bit key, which passes
// the usual batteries of tests. Philox4x32-10, Salmon et al. 2011, Parallel Random Numbers: As Easy
// as 1, 2, 3.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform in [0, 1), a multiple of 2^-53: the first 53 bits of Philox, key (low, high half of
// seed), counter (position, hypothesis, 0, 0). A function of its arguments and of nothing else, so
// a draw does not depend on company, threads, or what was drawn before it.
double UniformDraw(uint64_t seed, int hypothesis, int position);

// What a token is drawn from.
struct SamplingParameters {
  std::span<const TokenId> excluded = {};  // ascending
  TokenId penalised = kNoToken;            // stands among the excluded and takes part nonetheless
  float penalty = 0;                       // subtracted from its log-probability
  int top_k = 0;
  float top_p = 1;
};

// The token that `uniform` falls on. All that are not excluded are ranked by probability, equal
// ones by logit, then lower token first. With top_k > 0 the first top_k of them stay; of these,
// with top_p < 1, the fewest of the first whose probabilities add up to at least top_p of all that
// stayed (and never fewer than one). What stays is drawn by its probability: with the tokens in the
// order of their ids and P their sum, the first token at which the running sum exceeds uniform · P.
//
// The candidate's log-probability is the model's, not that of the draw: what a search gives the
// same token. A row that was cut must hold its top_k + |excluded| highest logits, and the penalised
// one. Nothing if no token may be drawn. Source: Fan et al. 2018 (top-k), Holtzman et al. 2020
// (top-p).
std::optional<Candidate> DrawToken(const LogitRow& row, const SamplingParameters& sampling,
                                   double uniform);

}  // namespace linnet::model
