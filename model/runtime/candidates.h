#pragma once

#include <limits>
#include <span>
#include <vector>

#include "model/runtime/search.h"

namespace linnet::model {

// A live hypothesis with one more token.
struct Candidate {
  float sum = 0;              // of the log-probabilities, this token's included
  float log_probability = 0;  // of this token
  int parent = 0;             // number of the live hypothesis
  TokenId token = 0;
};

// The order of a beam: by sum, and where sums are equal by parent, then token, so that a search is
// a function of its input.
bool Better(const Candidate& a, const Candidate& b);

// The best `capacity` candidates of all that were pushed. Only finite sums are taken.
class TopCandidates {
 public:
  explicit TopCandidates(int capacity);

  // A candidate of a lower sum would not get in. (At this sum, parent and token decide.)
  float threshold() const { return threshold_; }
  void Push(const Candidate& candidate);
  // Best first. Leaves nothing behind.
  std::vector<Candidate> Take();

 private:
  size_t capacity_;
  std::vector<Candidate> heap_;  // the worst one in front
  float threshold_ = std::numeric_limits<float>::lowest();
};

// One row of logits, and how it becomes log-probabilities and sums.
struct LogitRow {
  std::span<const float> logits;
  float temperature = 1;
  float log_normalizer = 0;  // logsumexp(logits / temperature)
  float sum = 0;             // of the hypothesis that the row belongs to
  int parent = 0;            // its number

  float LogProbability(TokenId token) const { return logits[token] / temperature - log_normalizer; }
};

// Pushes every token of the row that may be among the best, but none of `excluded` (ascending).
//
// The logits are read once, in blocks: a block whose largest logit would not get in is done with.
// Sums rise with logits, so nothing is missed. NaN never gets in.
void PushRow(const LogitRow& row, std::span<const TokenId> excluded, TopCandidates& top);

}  // namespace linnet::model
