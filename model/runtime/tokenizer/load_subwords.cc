#include "model/runtime/tokenizer/load_subwords.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/tokenizer/byte_level.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTokenizerBytes = int64_t{1} << 30;  // a vocabulary of millions of pieces

absl::StatusOr<std::string> Contents(const fs::path& file) {
  absl::StatusOr<std::string> contents = ReadFile(file, kMaxTokenizerBytes);
  if (!contents.ok()) return absl::FailedPreconditionError(contents.status().message());
  if (contents->empty()) {
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " is empty"));
  }
  return contents;
}

// Adds the file to an error.
absl::Status At(const fs::path& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file.string(), " ", status.message()));
}

// A vocabulary without special tokens, or of another model, makes every id wrong, so it is
// rejected.
absl::Status CheckSpecialTokens(const Vocabulary& vocabulary, const SpecialTokens& special) {
  const struct {
    const char* piece;
    TokenId expected;
  } known[] = {{"<pad>", special.pad}, {"</s>", special.eos}, {"<unk>", special.unk}};
  for (const auto& token : known) {
    const std::optional<TokenId> id = vocabulary.Find(token.piece);
    if (id.value_or(token.expected) != token.expected) {
      return absl::FailedPreconditionError(
          absl::StrCat("has id ", *id, " for ", token.piece, ", the model's is ", token.expected));
    }
  }
  if (vocabulary.Piece(special.eos).empty() || vocabulary.Piece(special.unk).empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("has ", vocabulary.size(), " lines and no pieces for eos (id ", special.eos,
                     ") and unk (id ", special.unk,
                     "): it must hold every piece of the model, special tokens included"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> LoadVocabulary(const fs::path& file, const SpecialTokens& special) {
  ASSIGN_OR_RETURN(const std::string contents, Contents(file));
  absl::StatusOr<Vocabulary> vocabulary = Vocabulary::Parse(contents);
  if (!vocabulary.ok()) return At(file, vocabulary.status());
  if (absl::Status status = CheckSpecialTokens(*vocabulary, special); !status.ok()) {
    return At(file, status);
  }
  return vocabulary;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subwords>> LoadSubwords(const TokenizerSpec& spec,
                                                       const SpecialTokens& special) {
  const fs::path& file = spec.subword_file;
  ASSIGN_OR_RETURN(const std::string contents, Contents(file));
  std::optional<Vocabulary> vocabulary;
  if (!spec.vocabulary_file.empty()) {
    ASSIGN_OR_RETURN(vocabulary, LoadVocabulary(spec.vocabulary_file, special));
  }
  if (spec.subword_kind != linnet::v1::SUBWORD_KIND_UNSPECIFIED) {
    if (!vocabulary.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat(file.string(), " has BPE codes, which need a vocabulary file"));
    }
    const bool bytes = spec.subword_kind == linnet::v1::SUBWORD_KIND_BYTE_LEVEL_BPE;
    absl::StatusOr<BpeCodes> codes =
        bytes ? BpeCodes::ParseWithoutWordEnds(contents) : BpeCodes::Parse(contents);
    if (!codes.ok()) return At(file, codes.status());
    return (bytes ? MakeByteLevel : MakeBytePairs)(*std::move(codes), *std::move(vocabulary),
                                                   special);
  }
  auto made = vocabulary.has_value()
                  ? MakeMappedSentencePiece(contents, *std::move(vocabulary), special)
                  : MakeSentencePiece(contents, special);
  if (!made.ok()) return At(file, made.status());
  return made;
}

}  // namespace linnet::model
