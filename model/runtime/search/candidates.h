#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "model/runtime/search/search.h"

namespace linnet::model {

// A live hypothesis with one more token.
struct Candidate {
  float sum = 0;              // of the log-probabilities, this token's included
  float log_probability = 0;  // of this token
  int parent = 0;             // number of the live hypothesis
  TokenId token = 0;
  float logit = 0;  // of the token
};

// The order of a beam: by sum, and where sums are equal by parent, then logit, then token. So a
// search is a function of its input, and the best of a row are those of its highest logits,
// whatever the sums were rounded to.
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
  std::span<const TokenId> tokens = {};  // of the logits; empty: logit t is token t's
  float temperature = 1;
  float log_normalizer = 0;  // logsumexp(row / temperature), over the whole vocabulary
  float sum = 0;             // of the hypothesis that the row belongs to
  int parent = 0;            // its number

  TokenId Token(size_t i) const { return tokens.empty() ? static_cast<TokenId>(i) : tokens[i]; }
  // Nothing where the row does not hold it.
  std::optional<float> Logit(TokenId token) const;
  float LogProbability(float logit) const { return logit / temperature - log_normalizer; }
  // `penalty` is subtracted from the log-probability.
  Candidate Extend(TokenId token, float logit, float penalty = 0) const;
};

// Pushes every token of the row that may be among the best, but none of `excluded` (ascending).
//
// A whole row is read once, in blocks: a block whose largest logit would not get in is done with.
// Sums rise with logits, so nothing is missed. NaN never gets in.
void PushRow(const LogitRow& row, std::span<const TokenId> excluded, TopCandidates& top);

// Gives the places of a beam to the banks by turns: the best candidate of the highest bank, that of
// the next one below, and so on to the lowest, then the second best of each. `banks` are those of
// the candidates. At most `most` of them.
std::vector<Candidate> AllocateBeam(std::vector<Candidate> candidates, std::span<const int> banks,
                                    int max);

}  // namespace linnet::model
