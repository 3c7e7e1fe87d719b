#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// A live hypothesis extended by one token.
struct Candidate {
  float sum = 0;              // of the log-probabilities, including this token's
  float log_probability = 0;  // of this token
  int parent = 0;             // number of the live hypothesis
  TokenId token = 0;
  float logit = 0;  // of the token
};

// The order of a beam: by sum, then parent, then logit, then token. No two candidates are equal, so
// a search is a function of its input, and the best candidates of a row are those of its highest
// logits, even where rounding makes sums equal.
bool Better(const Candidate& a, const Candidate& b);

// The best `capacity` candidates of all that were pushed, a few as a beam needs them. Ignores sums
// that are not finite.
class TopCandidates {
 public:
  explicit TopCandidates(int capacity);

  // Candidates with a lower sum are not kept. (At this sum, parent and token decide.)
  float threshold() const { return threshold_; }
  void Push(const Candidate& candidate);
  // Moves the candidates out, best first; into the memory of `to`, whose content is dropped.
  std::vector<Candidate> Take();
  void Take(std::vector<Candidate>& to);

 private:
  size_t capacity_;
  std::vector<Candidate> best_;  // best first
  float threshold_ = std::numeric_limits<float>::lowest();
};

// A change of the score of one token: its logit is scaled, then its log-probability, then `penalty`
// is subtracted. A value below 0 is scaled by multiplication, any other by division, so that a
// factor above 1 always lowers it (Keskar et al. 2019, as in Hugging Face's transformers).
struct Adjustment {
  TokenId token = kNoToken;
  float logit_factor = 1;
  float score_factor = 1;
  float penalty = 0;
};

// One row of logits, with the values that turn logits into log-probabilities and sums.
struct LogitRow {
  std::span<const float> logits;
  std::span<const TokenId> tokens = {};  // of the logits; empty: logit t is token t's
  float temperature = 1;
  float log_normalizer = 0;  // logsumexp(row / temperature), over the whole vocabulary
  float sum = 0;             // of the row's hypothesis
  int parent = 0;            // its number

  TokenId Token(size_t i) const { return tokens.empty() ? static_cast<TokenId>(i) : tokens[i]; }
  // nullopt if the row does not contain the token.
  std::optional<float> Logit(TokenId token) const;
  float LogProbability(float logit) const { return logit / temperature - log_normalizer; }
  Candidate Extend(TokenId token, float logit) const;
  Candidate Extend(const Adjustment& adjustment, float logit) const;
};

// Pushes every token of the row that may be among the best, except the excluded ones.
//
// A whole row is read once, in blocks: a block is skipped if a logit as high as its largest was not
// kept.
// Sums increase with logits, so no candidate is missed. NaN is never kept.
void PushRow(const LogitRow& row, absl::FunctionRef<bool(TokenId)> excluded, TopCandidates& top);
void PushRow(const LogitRow& row, std::span<const TokenId> excluded,  // ascending
             TopCandidates& top);

// Dynamic beam allocation: selects at most `max` candidates, round-robin over the banks: the best
// of the highest bank, that of the next lower one, and so on, then the second best of each.
// banks[i] is the bank of candidate i (Constraints::Bank).
std::vector<Candidate> AllocateBeam(std::vector<Candidate> candidates, std::span<const int> banks,
                                    int max);

}  // namespace linnet::model
