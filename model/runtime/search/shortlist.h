#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// The target tokens that the tokens of a source can become. A search that is limited to them reads
// a small part of the vocabulary. Immutable, so thread-safe.
//
// The file of a bundle, all numbers little-endian:
//
//   char magic[8] = "LNSHORT1"
//   u32  source_tokens, target_tokens, always, candidates
//   u32  offset[source_tokens + 1]    ascending from 0 to `candidates`
//   id   target[always]               candidates of every source
//   id   target[candidates]           offset[s] … offset[s + 1] - 1 are those of source token s
//
// An id is a u16 if there are at most 65,536 target tokens, else a u32. Bundles of earlier versions
// have the same as JSON (bundle.proto, message Shortlist), which is converted when it is read.
//
// The content is read into memory (some 2 MB) and not mapped: a bundle that is damaged in place
// stays served, and a process is killed if a file that it has mapped is cut short.
//
// Sources: Jean et al. 2015, On Using Very Large Target Vocabulary for Neural Machine Translation,
// section 3.3; Kim et al. 2019, From Research to Production and Back, section 3.1.
class Shortlist {
 public:
  // Returns FailedPreconditionError with the reason if the file does not fit a model with so many
  // source and target tokens.
  static absl::StatusOr<Shortlist> Read(const std::filesystem::path& file, int source_tokens,
                                        int target_tokens, const SpecialTokens& special);
  // As Read, of the bytes of a file; the messages do not name it.
  static absl::StatusOr<Shortlist> Parse(absl::string_view bytes, int source_tokens,
                                         int target_tokens, const SpecialTokens& special);

  // Returns, ascending and without duplicates: eos, unk, the tokens of every target, those that the
  // tokens of `source` can become, and `more`. A function of its arguments only.
  std::vector<TokenId> TokensFor(std::span<const TokenId> source,
                                 std::span<const TokenId> more) const;

 private:
  static absl::StatusOr<Shortlist> ParseBinary(absl::string_view bytes, int target_tokens);
  static absl::StatusOr<Shortlist> ParseJson(absl::string_view bytes, int source_tokens,
                                             int target_tokens);
  absl::Status Check(int source_tokens, int target_tokens) const;

  std::vector<TokenId> always_;
  std::vector<uint32_t> begins_;  // [source tokens + 1], into candidates_
  std::variant<std::vector<uint16_t>, std::vector<uint32_t>> candidates_;
};

}  // namespace linnet::model
