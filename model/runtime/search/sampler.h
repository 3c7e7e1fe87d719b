#pragma once

#include <span>
#include <vector>

#include "model/runtime/search/search.h"

namespace linnet::model {

// `beam_size` independent hypotheses draw a token at every step until it is eos (sampling.h).
// Forbidden tokens are not drawn, and eos is forced at the limit.
class Sampler final : public Search {
 public:
  explicit Sampler(const SearchSpec& spec);

 private:
  absl::Status Choose(std::span<const LogitRow> rows, std::vector<Candidate>& candidates) override;
  int wanted() const override { return options().top_k; }

  TokenId eos_;
  std::vector<int> numbers_;  // the number of each live hypothesis among the targets drawn
};

}  // namespace linnet::model
