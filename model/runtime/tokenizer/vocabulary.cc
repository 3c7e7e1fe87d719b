#include "model/runtime/tokenizer/vocabulary.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/segmenter.h"

namespace linnet::model {

absl::StatusOr<Vocabulary> Vocabulary::Parse(absl::string_view contents) {
  if (contents.size() > std::numeric_limits<int>::max()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "has ", contents.size(), " bytes, at most ", std::numeric_limits<int>::max(), " are read"));
  }
  Vocabulary vocabulary;
  absl::ConsumeSuffix(&contents, "\n");
  const std::vector<absl::string_view> lines = PartsOf(contents, '\n');
  vocabulary.pieces_ = std::vector<std::string>(lines.begin(), lines.end());
  for (int id = 0; id < vocabulary.size(); ++id) {
    const std::string& piece = vocabulary.pieces_[id];
    if (piece.empty()) continue;
    if (FirstInvalidUtf8(piece) >= 0) {
      return absl::FailedPreconditionError(absl::StrCat("line ", id + 1, " is not UTF-8"));
    }
    const auto [place, is_new] = vocabulary.ids_.emplace(piece, id);
    if (!is_new) {
      return absl::FailedPreconditionError(absl::StrCat(
          "lines ", place->second + 1, " and ", id + 1, " are the same piece \"", piece, "\""));
    }
  }
  if (vocabulary.ids_.empty()) return absl::FailedPreconditionError("has no pieces");
  return vocabulary;
}

std::optional<TokenId> Vocabulary::Find(absl::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

absl::string_view Vocabulary::Piece(TokenId id) const {
  return id >= 0 && id < size() ? absl::string_view(pieces_[id]) : absl::string_view();
}

}  // namespace linnet::model
