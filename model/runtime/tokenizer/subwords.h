#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/search/token.h"
#include "model/runtime/search/token_grammar.h"
#include "model/runtime/tokenizer/bpe.h"
#include "model/runtime/tokenizer/vocabulary.h"

namespace linnet::model {

// Converts text to ids of subwords and back. Only tokenizer.cc uses it. Implementations are
// immutable, so thread-safe.
class Subwords {
 public:
  virtual ~Subwords() = default;

  virtual absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text) const = 0;
  // `tokens` contain no special tokens except unk.
  virtual std::string Decode(std::span<const TokenId> tokens) const = 0;
  virtual int pieces() const = 0;
  // For a token in [0, pieces()): the piece as its file has it, with marks of blanks and of words.
  virtual absl::string_view Piece(TokenId token) const = 0;
  // The grammar's class of any id; special tokens are control pieces.
  virtual TokenGrammar::Class ClassOf(TokenId token) const = 0;
};

// A SentencePiece model whose ids are those of the translation model. `serialized` is the file's
// contents; errors do not contain the file name.
absl::StatusOr<std::unique_ptr<Subwords>> MakeSentencePiece(absl::string_view serialized,
                                                            const SpecialTokens& special);

// A SentencePiece model with the ids of a vocabulary file, as in Marian and fairseq. Names of
// target languages in the vocabulary (">>fra<<") are control pieces, which no text becomes.
absl::StatusOr<std::unique_ptr<Subwords>> MakeMappedSentencePiece(absl::string_view serialized,
                                                                  Vocabulary vocabulary,
                                                                  const SpecialTokens& special);

// Byte pairs of the words between white space. "@@" follows every piece but the last of a word.
std::unique_ptr<Subwords> MakeBytePairs(BpeCodes codes, Vocabulary vocabulary,
                                        const SpecialTokens& special);

}  // namespace linnet::model
