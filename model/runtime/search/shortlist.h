#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// Which target tokens the tokens of a source can become: what a search must look at, of a
// vocabulary that is far larger. What it is on disk is told in bundle.proto, message Shortlist.
//
// Sources: Jean et al. 2015, On Using Very Large Target Vocabulary for Neural Machine Translation,
// section 3.3; Kim et al. 2019, From Research to Production and Back, section 3.1.
class Shortlist {
 public:
  // FailedPreconditionError, saying what is wrong, if the file does not fit a model of so many
  // source and target tokens.
  static absl::StatusOr<Shortlist> Read(const std::filesystem::path& file, int source_tokens,
                                        int target_tokens, const SpecialTokens& special);

  // Ascending, each once: the end token and the unknown one, what every target may hold, what the
  // tokens of `source` can become, and `more`. A function of its arguments alone.
  std::vector<TokenId> TokensFor(std::span<const TokenId> source,
                                 std::span<const TokenId> more) const;

 private:
  std::vector<TokenId> always_;
  std::vector<int64_t> begins_;  // [source tokens + 1], into candidates_
  std::vector<TokenId> candidates_;
};

}  // namespace linnet::model
