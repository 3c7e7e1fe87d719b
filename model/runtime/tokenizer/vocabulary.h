#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// The pieces of a vocabulary file, for models whose ids are not those of their subword file.
// Immutable, so thread-safe.
class Vocabulary {
 public:
  // One piece per line; the line number, from 0, is its id. Only "\n" ends a line and nothing is
  // trimmed, since pieces may be white space. An empty line is an id without a piece. Returns
  // FailedPreconditionError with the line for a repeated piece and for one that is not UTF-8, and
  // for a file without pieces.
  static absl::StatusOr<Vocabulary> Parse(absl::string_view contents);

  std::optional<TokenId> Find(absl::string_view piece) const;
  // Empty for ids without a piece, including negative ones and those after the last.
  absl::string_view Piece(TokenId id) const;

  int size() const { return static_cast<int>(pieces_.size()); }

 private:
  std::vector<std::string> pieces_;
  absl::flat_hash_map<std::string, TokenId> ids_;
};

}  // namespace linnet::model
