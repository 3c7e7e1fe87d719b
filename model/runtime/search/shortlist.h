#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// The target tokens that the tokens of a source can become. A search that is limited to them reads
// a small part of the vocabulary. bundle.proto, message Shortlist, is the file format. Immutable,
// so thread-safe.
//
// Sources: Jean et al. 2015, On Using Very Large Target Vocabulary for Neural Machine Translation,
// section 3.3; Kim et al. 2019, From Research to Production and Back, section 3.1.
class Shortlist {
 public:
  // Returns FailedPreconditionError with the reason if the file does not fit a model with so many
  // source and target tokens.
  static absl::StatusOr<Shortlist> Read(const std::filesystem::path& file, int source_tokens,
                                        int target_tokens, const SpecialTokens& special);

  // Returns, ascending and without duplicates: eos, unk, the tokens of every target, those that the
  // tokens of `source` can become, and `more`. A function of its arguments only.
  std::vector<TokenId> TokensFor(std::span<const TokenId> source,
                                 std::span<const TokenId> more) const;

 private:
  std::vector<TokenId> always_;
  std::vector<int64_t> begins_;  // [source tokens + 1], into candidates_
  std::vector<TokenId> candidates_;
};

}  // namespace linnet::model
